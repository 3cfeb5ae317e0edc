"""The user's settings: read, refused with lines, and without a file nothing is loaded for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal import ROOT
from tui.cli.config import config_path, load_settings, settings_of
from tui.cli.exits import Exit
from tui.cli.main import run
from tui.profile.problem import ProfileError
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
