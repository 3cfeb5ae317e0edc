"""The user's settings: ``config.yaml`` in the user's config folder, or the file that ``HCS_CONFIG`` names."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui import __version__

if TYPE_CHECKING:
    from tui.cli.config_schema import ConfigSpec
    from tui.profile.problem import Problem
    from tui.profile.source import Source
    from tui.view.settings import Settings

VARIABLE = "HCS_CONFIG"


def config_path() -> Path:
    """Where the settings are read from; a file that ``HCS_CONFIG`` names must be there, the other one may be."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    from platformdirs import user_config_path

    from tui.profile.builtin import SETTINGS

    return user_config_path("hcs-tui") / SETTINGS


def load_settings() -> Settings:
    """The user's settings; raises ``ProfileError`` with every mistake and its line. Without a file nothing that is
    needed to read one is loaded."""
    from tui.view.settings import Settings

    path = config_path()
    if not os.environ.get(VARIABLE) and not path.exists():
        return Settings()
    stamp = _stamp(path)
    settings = _remembered(stamp)
    if settings is None:
        settings = settings_of(path)
        _remember(stamp, settings)
    return settings


def _stamp(path: Path) -> list[object]:
    """What changes when the file does, or what is allowed in it."""
    try:
        found = path.stat()
    except OSError:  # reading it tells why
        return []
    return [__version__, str(path.absolute()), found.st_ino, found.st_size, found.st_mtime_ns]


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("hcs-tui") / "settings.json"


def _remembered(stamp: list[object]) -> Settings | None:
    """The settings of a file that was found right before: what reads and checks YAML takes longer to load than all
    else that a first paint needs."""
    from tui.view.settings import Settings

    try:
        known = json.loads(_cache().read_bytes())
        if not stamp or known["stamp"] != stamp:
            return None
        told = known["settings"]
        return Settings(**{**told, "alert_command": tuple(told["alert_command"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(stamp: list[object], settings: Settings) -> None:
    with contextlib.suppress(OSError):
        path = _cache()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps({"stamp": stamp, "settings": asdict(settings)}))
        fresh.replace(path)


def settings_of(path: Path) -> Settings:
    """The settings in ``path``. Raises ``ProfileError``."""
    from tui.profile.load import read_text
    from tui.profile.problem import Problem, ProfileError, nearest
    from tui.profile.source import read
    from tui.view.keys import key_errors, movable
    from tui.view.settings import Settings

    source = read(read_text(path, "config"), str(path))
    if source.value is None and not source.problems:
        return Settings()
    if not isinstance(source.value, dict):
        raise ProfileError([*source.problems, Problem(str(path), 1, "", "is not a mapping of keys to values")])
    problems = list(source.problems)
    spec, broken = _validated(source, problems)
    known = {id: keys for id, keys in spec.keys.items() if id in movable()}
    unknown = [id for id in _actions(source.value) if id not in movable()]
    wrong = [(id, f"no such action; {nearest(id, movable())}".rstrip("; ")) for id in unknown]
    wrong += key_errors(known, broken)
    problems += [source.problem(("keys", id), why) for id, why in wrong]
    if problems:
        raise ProfileError(problems)
    return Settings(spec.keys, spec.theme, spec.ascii, spec.bell, tuple(spec.alert_command))


def _validated(source: Source, problems: list[Problem]) -> tuple[ConfigSpec, frozenset[str]]:
    """The settings that are right by themselves, and the actions whose keys are not: all that is wrong is told and left
    out, so that the rest is still checked together."""
    from pydantic import ValidationError

    from tui.cli.config_schema import ConfigSpec, message

    value: dict[Any, Any] = {**source.value} if isinstance(source.value, dict) else {}
    broken: set[str] = set()
    while True:
        try:
            return ConfigSpec.model_validate(value), frozenset(broken)
        except ValidationError as error:
            for told in error.errors():
                key, *inner = told["loc"]
                if inner and isinstance(value[key], dict):
                    value[key] = {id: keys for id, keys in value[key].items() if id != inner[0]}
                    broken.add(str(inner[0]))
                else:
                    value.pop(key, None)
                problems += [source.problem((key, *inner[:1]), why) for why in message(told).split("\n")]


def _actions(value: dict[Any, Any]) -> list[str]:
    """The actions that stand in the file, those too whose keys are wrong."""
    keys = value.get("keys")
    return [str(id) for id in keys] if isinstance(keys, dict) else []
