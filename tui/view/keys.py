"""Keys that a user gave to actions: checked, and shown as they are pressed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace

from textual.binding import Binding
from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from tui.view.actions import ACTS, FIXED, Act
from tui.view.log.pane import LogPane

_NAMED = frozenset(key.value for key in Keys if "<" not in key.value) | frozenset(f"f{n}" for n in range(1, 25))
_SHOWN = {"escape": "Esc", "enter": "Enter", "space": "Space", "delete": "Del", "backspace": "⌫"}


def key_error(key: str) -> str:
    """Why ``key`` is no key; empty where it is one: a character, or a name such as ``ctrl+t``, ``f5`` and ``space``."""
    if len(key) == 1:
        return "" if key.isprintable() and not key.isspace() else f"{key!r} is no key; a blank is written space"
    *modifiers, last = key.split("+")
    plain = len(last) == 1 and last.isalnum() and bool(modifiers)
    known = all(word in ("ctrl", "alt", "shift") for word in modifiers) and (plain or last in _NAMED)
    return (
        ""
        if known or key in _NAMED or _names_a_character(key)
        else f"{key!r} is no key; write t, T, ctrl+t, f5 or space"
    )


def _names_a_character(key: str) -> bool:
    """``comma``, ``exclamation_mark``: as Unicode calls it."""
    try:
        return full_name(unicodedata.lookup(key.replace("_", " "))) == key
    except (KeyError, ValueError):
        return key in KEY_NAME_REPLACEMENTS.values()


def key_errors(keys: Mapping[str, str]) -> dict[str, str]:
    """Actions that a user gave a key → why it cannot have it: another action keeps it, or the log's pane has it."""
    log = {key.strip() for binding in LogPane.BINDINGS for key in getattr(binding, "key", "").split(",")}
    found = {}
    owner = {key: act.id for act in ACTS if act.id not in keys for key in act.keys.split(",")}
    for id, mine in keys.items():
        for key in mine.split(","):
            name = full_name(key)
            if name in owner:
                found[id] = f"{key!r} is the key of {owner[name]}: give that another one too"
            elif name in log:
                found[id] = f"{key!r} is a key of the log"
            owner[name] = id
    return found


def full_name(key: str) -> str:
    """A character's key as Textual calls it: ``?`` → ``question_mark``."""
    if key == ",":  # Textual takes it for what parts several keys
        return "comma"
    return next(iter(Binding.make_bindings([(key, "", "")]))).key


def remapped(keys: Mapping[str, str]) -> tuple[Act, ...]:
    """The table of actions with the user's keys in it."""
    return tuple(replace(act, keys=keys[act.id], key=shown(keys[act.id])) if act.id in keys else act for act in ACTS)


def shown(keys: str) -> str:
    """Keys as the footer shows them: ``ctrl+t`` → ``^t``."""
    return " ".join(_SHOWN.get(key, re.sub(r"^ctrl\+", "^", key)) for key in keys.split(","))


def movable() -> tuple[str, ...]:
    """The actions whose keys can be changed."""
    return tuple(act.id for act in ACTS if act.id not in FIXED)
