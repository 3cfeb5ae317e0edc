"""The user's settings: ``config.yaml`` in the user's config folder, or the file that ``HCS_CONFIG`` names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    return settings_of(path)


def settings_of(path: Path) -> Settings:
    """The settings in ``path``. Raises ``ProfileError``."""
    from pydantic import ValidationError

    from tui.cli.config_schema import ConfigSpec, message
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
    try:
        spec = ConfigSpec.model_validate(source.value)
    except ValidationError as error:
        problems += [source.problem(tuple(told["loc"]), message(told)) for told in error.errors()]
        raise ProfileError(problems) from None
    unknown = {id: f"no such action; {nearest(id, movable())}".rstrip("; ") for id in spec.keys if id not in movable()}
    wrong = unknown or key_errors(spec.keys)
    problems += [source.problem(("keys", id), why) for id, why in wrong.items()]
    if problems:
        raise ProfileError(problems)
    return Settings(spec.keys, spec.theme, spec.ascii, spec.bell, tuple(spec.alert_command))
