"""Running servers: one Supervisor per server, one Fleet for all. asyncio, no Textual."""
