"""What the README says of keys and commands is what the program has. ``python -m tests.test_readme`` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from tui.cli.exits import Exit
from tui.cli.main import COMMANDS, DEFAULT
from tui.view.actions import key_table

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN = "<!-- keys: `make readme` writes this table from tui/view/actions.py -->\n"
END = "<!-- end of keys -->\n"


def split(text: str) -> tuple[str, str, str]:
    """What stands before, between and after the marks of the key table."""
    before, _, rest = text.partition(BEGIN)
    between, _, after = rest.partition(END)
    return before, between, after


def test_the_key_table_is_that_of_the_actions() -> None:
    assert split(README.read_text())[1] == key_table(), "the keys changed: make readme"


def test_every_command_is_named() -> None:
    text = README.read_text()
    missing = [name for name in COMMANDS if name != DEFAULT and f"hcs-tui {name}" not in text]
    assert not missing


def test_every_exit_code_of_the_contract_is_explained() -> None:
    text = README.read_text()
    table = text[text.index("| exit | means |") : text.index("## Keys")]
    told = {int(code) for row in re.findall(r"(?m)^\| ([\d, ]+) \|", table) for code in row.split(", ")}
    assert told == set(Exit)


if __name__ == "__main__":
    before, _, after = split(README.read_text())
    README.write_text(before + BEGIN + key_table() + END + after)
