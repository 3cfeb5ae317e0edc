"""The demo: an embedded SSH host and simulated SGLang servers. Nothing here imports the rest of the program."""
