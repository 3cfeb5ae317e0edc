"""``python -m tui`` is ``hcs-tui``."""

from tui.cli.main import main

main()
