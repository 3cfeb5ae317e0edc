"""Where profiles are found: the working directory, the user's config folder, and those that come with the program."""

from __future__ import annotations

from pathlib import Path

import tui
from tui.profile.problem import Problem, ProfileError, nearest

SUFFIXES = (".yaml", ".yml")
SETTINGS = "config.yaml"  # of the program, in the user's config folder: no profile


def builtin_profiles() -> list[Path]:
    """The profiles that come with the program, by name: inside the wheel, else the repository's folder."""
    package = Path(tui.__file__).resolve().parent
    for folder in (package / "_profiles", package.parent / "profiles"):
        found = _in(folder)
        if found:
            return found
    return []


def available_profiles() -> list[Path]:
    """All that a picker offers: ``./profiles``, the user's config folder, the built-in ones; each file once."""
    from platformdirs import user_config_path

    folders = (Path("profiles"), user_config_path("hcs-tui") / "profiles", user_config_path("hcs-tui"))
    found = [path for folder in folders for path in _in(folder) if path.name != SETTINGS] + builtin_profiles()
    return list({path.resolve(): path for path in reversed(found)}.values())[::-1]


def find_profile(text: str) -> Path:
    """The file that ``text`` means: a path, or the bare name of an available profile.

    A text that looks like a path is taken as one, and opening it tells whether it is there. Raises ``ProfileError``
    for a bare name that nothing has.
    """
    path = Path(text).expanduser()
    if path.exists() or path.suffix in SUFFIXES or "/" in text:
        return path
    available = available_profiles()
    for candidate in available:
        if candidate.stem == text:
            return candidate
    hint = nearest(text, dict.fromkeys(candidate.stem for candidate in available))
    raise ProfileError([Problem(text, 0, "", f"no such file, and no profile has this name; {hint}".rstrip("; "))])


def _in(folder: Path) -> list[Path]:
    try:
        found = [path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file()]
        return sorted(found, key=lambda path: path.stem)
    except OSError:
        return []
