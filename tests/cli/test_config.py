"""The user's settings: read, refused with lines, and without a file nothing is loaded for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.terminal import ROOT
from tui.cli.config import config_path, load_settings, settings_of
from tui.cli.config_schema import config_schema
from tui.cli.exits import Exit
from tui.cli.main import run
from tui.profile.problem import ProfileError
from tui.profile.source import read
from tui.view.actions import BY_ID
from tui.view.keys import movable
from tui.view.settings import Settings

WRONG = [
    ("them: dark", ":1: them: unknown key; did you mean 'theme'?"),
    ("theme: darker", "theme: 'darker' is no theme; did you mean 'dark'?"),
    ("bell: 1", "bell: takes true or false"),
    ("ascii: 'yes'", "ascii: takes true or false"),
    ("keys:\n  kil: X", ":2: keys.kil: no such action; did you mean 'kill'?"),
    ("keys: [a]", "keys: takes a mapping"),
    ("keys:\n  kill: q", ":2: keys.kill: 'q' is the key of quit"),
    ("keys:\n  kill: X\n  launch: X", ":3: keys.launch: 'X' is the key of kill"),
    ("keys:\n  kill: '?'", "'?' is the key of help"),
    ("keys:\n  kill: n", "'n' is a key of the log"),
    ("keys:\n  kill: ctrl+", "is no key"),
    ("keys:\n  kill: strg+k", "'strg+k' is no key"),
    ("keys:\n  kill: [X, f9, X]", ":2: keys.kill: 'X' stands there twice"),
    ("keys:\n  kill: tab", "'tab' is the key of next_panel, which keeps it"),
    ("keys:\n  kill: shift+tab", "'shift+tab' is a key of every screen"),
    ("keys:\n  copy_command: X\n  kill: y", ":3: keys.kill: 'y' answers the question before a server is ended"),
    ("keys:\n  alerts: a", "'a' is a key of the charts"),
    ("keys:\n  copy_lines: X\n  alerts: strg+A", ":3: keys.alerts: 'strg+A' is no key: 'strg' is none to hold"),
    ("keys:\n  kill: escpe", "'escpe' is no key; did you mean 'escape'?"),
    ("keys:\n  7: x", "keys.7: no such action"),
    ("alert_command: [true]", "takes a list of words"),
    ("alert_command: ['', x]", "its first word is the program, and is empty"),
    ("keys:\n  jump: x", "keys.jump: no such action"),
    ("keys:\n  kill: []", "takes a key"),
    ("alert_command: notify-send x", "takes a list of words"),
    ("alert_command: []", "takes a list of words"),
    ("keys: {", "not valid YAML"),
    ("- a", "is not a mapping"),
    ("theme: dark\ntheme: light", ":2: theme: given twice"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text + "\n")
    with pytest.raises(ProfileError) as caught:
        settings_of(path)
    told = str(caught.value)
    assert words in told and told.startswith(f"{path}:") and "\n" not in told


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "theme: drak\nbell: 1\nkeys:\n  kill: strg+k\n  launch: K\n  edit: [x, tt, uu]\n  hlp: f1\n"
        "  alerts: c\n  sort: E\nbeep: true\nalert_command: x\n"
    )
    with pytest.raises(ProfileError) as caught:
        settings_of(path)
    told = [(problem.line, problem.key, problem.message.partition(";")[0]) for problem in caught.value.problems]
    assert told == [
        (1, "theme", "'drak' is no theme"),
        (2, "bell", "takes true or false"),
        (4, "keys.kill", "'strg+k' is no key: 'strg' is none to hold, which are ctrl, alt, shift"),
        (6, "keys.edit", "'tt' is no key"),
        (6, "keys.edit", "'uu' is no key"),
        (7, "keys.hlp", "no such action"),
        (8, "keys.alerts", "'c' is the key of charts: give that another one too"),
        (10, "beep", "unknown key"),
        (11, "alert_command", "takes a list of words, [notify-send, hcs-tui]: it is run without a shell"),
    ]  # launch may have K and sort E: those to whom they belong were to have others


def test_an_action_keeps_its_own_keys(tmp_path: Path) -> None:
    """Written down as they are, they are no mistakes, whatever else uses them."""
    path = tmp_path / "config.yaml"
    own = {id: [{"comma": "','"}.get(key, key) for key in BY_ID[id].keys.split(",")] for id in movable()}
    path.write_text("keys:\n" + "".join(f"  {id}: [{', '.join(keys)}]\n" for id, keys in own.items()))
    assert set(settings_of(path).keys) == set(movable())


ACCEPTED = [
    ("keys: {}", True),
    ("keys: {kill: X}", True),
    ("keys: {kill: 0}", True),
    ("keys: {kill: [X, 0]}", True),
    ("keys: {kill: []}", False),
    ("keys: {kill: true}", False),
    ("keys: {kill: ''}", False),
    ("keys: {kil: X}", False),
    ("keys: {jump: X}", False),
    ("keys:", True),
    ("keys: []", False),
    ("theme: nord", True),
    ("theme: norde", False),
    ("bell: false", True),
    ("bell: 0", False),
    ("alert_command: [a, 1, 0.5]", True),
    ("alert_command: [true]", False),
    ("alert_command: a", False),
    ("alert_command: []", False),
    ("beep: 1", False),
    ("[]", False),
]


@pytest.mark.parametrize(("text", "right"), ACCEPTED)
def test_the_schema_takes_what_the_program_takes(text: str, right: bool, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text + "\n")
    assert jsonschema.Draft202012Validator(config_schema()).is_valid(read(text, "").value) is right
    try:
        settings_of(path)
    except ProfileError:
        assert not right
    else:
        assert right


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "keys: {kill: X, launch: [ctrl+l, f5], smoke_test: '!'}\n"
        "theme: light\nascii: true\nbell: false\nalert_command: [notify-send, -u, critical]\n"
    )
    keys = {"kill": "X", "launch": "ctrl+l,f5", "smoke_test": "!"}
    assert settings_of(path) == Settings(keys, "light", True, False, ("notify-send", "-u", "critical"))
    path.write_text("# nothing yet\n")
    assert settings_of(path) == Settings()


def test_keys_can_be_swapped(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("keys: {kill: l, launch: K}\n")
    assert settings_of(path).keys == {"kill": "l", "launch": "K"}


def test_where_it_is_read_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HCS_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert config_path() == tmp_path / "hcs-tui" / "config.yaml" and load_settings() == Settings()
    config_path().parent.mkdir()
    config_path().write_text("theme: light\n")
    assert load_settings().theme == "light"
    monkeypatch.setenv("HCS_CONFIG", str(tmp_path / "none.yaml"))
    with pytest.raises(ProfileError, match=r"none\.yaml: no such file"):
        load_settings()
    monkeypatch.setenv("HCS_CONFIG", str(tmp_path))
    with pytest.raises(ProfileError, match="is a directory; a config is a YAML file"):
        load_settings()


def test_without_a_file_no_reader_of_files_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from tui.cli.config import load_settings; load_settings();"
        "print(sorted({'pydantic', 'ruamel', 'textual'} & set(sys.modules)))"
    )
    env = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert told.stdout.strip() == "[]", told.stderr


def test_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "config"]) is Exit.OK
    printed = capsys.readouterr().out
    assert '"alert_command"' in printed and '"smoke_test"' in printed


def test_a_file_that_was_right_is_not_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    code = (
        "import sys; from tui.cli.config import load_settings; print(load_settings());"
        "print(sorted({'pydantic', 'ruamel', 'textual'} & set(sys.modules)))"
    )
    env = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "HCS_CONFIG": str(path)}

    def start() -> list[str]:
        told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        return (told.stdout + told.stderr).splitlines()

    path.write_text("theme: light\nkeys: {kill: X}\nalert_command: [a, b]\n")
    first = start()
    again = start()
    assert "theme='light'" in first[0] and again == [first[0], "[]"] and first[1] != "[]"
    path.write_text("theme: dark\nbel: 1\n")
    assert "bel: unknown key" in "".join(start())
    path.write_text("theme: dark\n")
    assert "theme='dark'" in start()[0]
    (next((tmp_path / ".cache").rglob("settings.json"))).write_text("broken")
    assert "theme='dark'" in start()[0]
