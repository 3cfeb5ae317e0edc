"""A server's flags as lines that a person edits, and back: what changed, what is wrong, what host memory it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tui.profile.flags import flag_error, flag_warning
from tui.profile.model import MASK, SENSITIVE, ArgValue, Secret, Server, arg_value, flag_name
from tui.sglang.advice_flags import nearest_flag
from tui.sglang.flag_names import FLAG_NAMES

_SECRET = "!secret "


@dataclass(frozen=True, slots=True)
class Change:
    """A flag's text before and after; ``None``: it is not there."""

    flag: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Edit:
    """What edited lines mean. ``overrides`` is what a relaunch takes (``None`` removes a flag), ``flags`` all flags as
    they will be; ``errors`` forbid a relaunch, ``warnings`` do not."""

    changes: tuple[Change, ...] = ()
    overrides: Mapping[str, object] | None = None
    flags: Mapping[str, object] | None = None
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def flag_texts(server: Server) -> dict[str, str]:
    """A server's flags as they are written in a profile; secrets by their name, keys in plain text as ``****``."""
    own = server.command is not None  # its words are texts, whatever they look like
    return {
        flag: value if own and isinstance(value, str) and not SENSITIVE.search(flag) else _text(flag, value)
        for flag, value in server.flags.items()
        if flag != "port"
    }


def lines_of(flags: Mapping[str, str]) -> str:
    """Flags as lines to edit."""
    return "".join(f"{flag}: {text}\n" for flag, text in flags.items())


def edit(before: Mapping[str, str], text: str) -> Edit:
    """What the lines ``text`` change about the flags ``before``."""
    after, errors = _read(text)
    changes = tuple(
        Change(flag, before.get(flag), after.get(flag))
        for flag in dict.fromkeys((*before, *after))
        if before.get(flag) != after.get(flag)
    )
    overrides: dict[str, object] = {}
    warnings: list[str] = []
    for change in changes:
        value: ArgValue | None = None
        if change.new is not None:
            try:
                value = _value(change.new)
            except (ValueError, YAMLError) as error:
                errors.append(f"{change.flag}: {' '.join(str(error).split())[:100]}")
                continue
            if wrong := flag_error(change.flag, value):
                errors.append(f"{change.flag} {wrong}")
                continue
            if doubt := _doubt(change.flag, value):
                warnings.append(f"{change.flag}: {doubt}")
        overrides[change.flag] = value
    flags = {flag: _plain(text) for flag, text in after.items()}
    return Edit(changes, overrides, flags, tuple(errors), tuple(warnings))


def _read(text: str) -> tuple[dict[str, str], list[str]]:
    """Lines ``flag: value``, ``--flag value`` or ``--flag=value``; a flag alone is a bare one."""
    found: dict[str, str] = {}
    errors = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        dashed = line.startswith("--")
        name, _, value = line.replace("=", " ", 1).partition(" ") if dashed else line.partition(":")
        flag, value = flag_name(name.removesuffix(":")), value.strip() or "true"
        if not flag or " " in flag:
            errors.append(f"line {number}: takes flag: value, not {line[:40]!r}")
        elif flag in found:
            errors.append(f"line {number}: {flag} stands there twice")
        else:
            found[flag] = value
    return found, errors


def _value(text: str) -> ArgValue:
    """A flag's value as in a profile. Raises ``ValueError`` and ``YAMLError``."""
    if text.startswith(_SECRET):
        return Secret(text.removeprefix(_SECRET).strip())
    if text == MASK:
        raise ValueError("the stars stand for what was hidden: write the value, or !secret NAME")
    value = YAML(typ="safe", pure=True).load(text)
    if value is None:
        raise ValueError("takes a value; delete its line to remove a flag")
    return arg_value(value)


def _plain(text: str) -> object:
    try:
        return _value(text)
    except (ValueError, YAMLError):
        return text


def _doubt(flag: str, value: ArgValue) -> str:
    """What is doubtful about a flag: nobody knows it, or its value."""
    if warning := flag_warning(flag, value):
        return warning
    if flag in FLAG_NAMES:
        return ""
    close = nearest_flag(flag)
    hint = f"; did you mean {close.removeprefix('--')!r}?" if close else ""
    return f"no known SGLang has this flag{hint}"


def _text(flag: str, value: ArgValue) -> str:
    if isinstance(value, Secret):
        return f"{_SECRET}{value.name}"
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(flag, one) for one in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return MASK if SENSITIVE.search(flag) else _quoted(value)
    return str(value)


def _quoted(text: str) -> str:
    """``text`` so that it is read as the same text again."""
    try:
        plain = YAML(typ="safe", pure=True).load(text)
    except YAMLError:
        plain = None
    return text if plain == text and "\n" not in text else "'" + text.replace("'", "''") + "'"
