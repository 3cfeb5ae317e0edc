"""The command line. ``tui.cli.main`` has the frame; each command is a module of its own, loaded when it is used."""
