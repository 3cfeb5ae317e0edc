"""What SGLang says and what it means. Pure: no I/O, no clock, no asyncio."""
