"""A profile from a file: every mistake at once, each with its line."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tui.profile.expand import Expansion
from tui.profile.files import not_a_file
from tui.profile.model import Profile
from tui.profile.problem import Problem, ProfileError, nearest
from tui.profile.schema import HostSpec, ProfileSpec, ServerSpec
from tui.profile.source import Path, Source, read
from tui.profile.words import NAME

MAX_BYTES = 1 << 20


def load(path: FilePath | str) -> Profile:
    """The profile in ``path``; raises ``ProfileError`` with every mistake that was found."""
    file = FilePath(path)
    return loads(read_text(file), str(path), file)


def loads(text: str, file: str = "<text>", path: FilePath | None = None) -> Profile:
    """The profile in ``text``; ``file`` is how mistakes name it. Raises ``ProfileError``."""
    source = read(text, file)
    if source.value is None:
        raise ProfileError([*source.problems, Problem(file, 0, "", "is empty: a profile has servers")])
    if not isinstance(source.value, dict):
        raise ProfileError([Problem(file, 1, "", "is no profile: the file is not a mapping of keys")])
    problems = list(source.problems)
    spec, broken = _validated(source, problems)
    expansion = Expansion(source, spec, broken)
    profile = expansion.run(_default_name(path), path)
    problems += expansion.problems
    if problems or profile is None:
        raise ProfileError(problems)
    return profile


def read_text(path: FilePath, what: str = "profile") -> str:
    """The text of a file that should be a ``what``, or a ``ProfileError`` that says in one line why there is none."""
    try:
        if wrong := not_a_file(path):
            raise ProfileError([Problem(str(path), 0, "", f"{wrong}; a {what} is a YAML file")])
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ProfileError([Problem(str(path), 0, "", _reason(error))]) from None
    if len(data) > MAX_BYTES:
        raise ProfileError([Problem(str(path), 0, "", f"is larger than 1 MiB: no {what}")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ProfileError([Problem(str(path), 0, "", f"is no text in UTF-8: no {what}")])
    return text


def _reason(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()


def _default_name(path: FilePath | None) -> str:
    stem = path.stem if path else "profile"
    return stem if NAME.matches(stem) else "profile"


def _validated(source: Source, problems: list[Problem]) -> tuple[ProfileSpec, frozenset[Path]]:
    """The parts of the file that are right, and the paths that are not: these are reported and left out, so that
    the checks across servers still run."""
    value: Any = source.value
    broken: set[Path] = set()
    while True:
        try:
            return ProfileSpec.model_validate(value), frozenset(broken)
        except ValidationError as error:
            for details in error.errors():
                path = _known(details, value)
                problems.append(source.problem(path, _message(details)))
                broken.add(path)
                _drop(value, path)


def _known(details: ErrorDetails, value: Any) -> Path:
    """The error's place as a path of the file, as deep as the file goes (a missing key goes one deeper)."""
    path: list[str | int] = []
    for step in details["loc"]:
        if not isinstance(value, dict | list):
            break
        path.append(step)
        if isinstance(value, list):
            value = value[step] if isinstance(step, int) and step < len(value) else None
        else:
            value = value.get(step)
    return tuple(path)


def _drop(value: Any, path: Path) -> None:
    """Take the value at ``path`` out; a missing ``servers`` becomes an empty one."""
    *around, last = path
    for step in around:
        value = value[step]
    if path == ("servers",):
        value["servers"] = {}
    elif isinstance(value, dict):
        value.pop(last, None)


def _message(details: ErrorDetails) -> str:
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "extra_forbidden":
            *around, key = details["loc"]
            return f"unknown key; {nearest(str(key), _model_at(tuple(around)).model_fields)}".rstrip("; ")
        case "missing":
            return "is missing: a profile has servers"
        case "dict_type" | "model_type" | "model_attributes_type":
            return "takes a mapping of keys to values"
        case _:
            return str(details["msg"])


def _model_at(place: tuple[str | int, ...]) -> type[BaseModel]:
    match place:
        case ("hosts", _):
            return HostSpec
        case ("defaults",) | ("servers", _):
            return ServerSpec
        case _:
            return ProfileSpec
