"""What the user wrote: profiles of hosts and servers. Load one with ``tui.profile.load.load``."""
