"""Keys that a user gave to actions: checked, and shown as they are pressed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys
from textual.screen import Screen

from tui.view.actions import ACTS, BY_ID, FIXED, Act, of_board
from tui.view.log.pane import LogPane

_NAMED = frozenset(key.value for key in Keys if "<" not in key.value) | frozenset(f"f{n}" for n in range(1, 25))
_HELD = ("ctrl", "alt", "shift")
_SHOWN = {"escape": "Esc", "enter": "Enter", "space": "Space", "delete": "Del", "backspace": "⌫"}


def key_error(key: str) -> str:
    """Why ``key`` is no key; empty where it is one: a character, or a name such as ``ctrl+t``, ``f5`` and ``space``."""
    if len(key) == 1:
        return "" if key.isprintable() and not key.isspace() else f"{key!r} is no key; a blank is written space"
    if key in _NAMED or _names_a_character(key):
        return ""
    *held, last = key.split("+")
    if strange := next((word for word in held if word not in _HELD), None):
        return f"{key!r} is no key: {strange!r} is none to hold, which are {', '.join(_HELD)}"
    if held and (last in _NAMED or (len(last) == 1 and last.isalnum())):
        return ""
    near = get_close_matches(last, _NAMED, n=1, cutoff=0.7)
    hint = f"did you mean {'+'.join([*held, *near])!r}?" if near else "write t, T, ctrl+t, f5 or space"
    return f"{key!r} is no key; {hint}"


def _names_a_character(key: str) -> bool:
    """``comma``, ``exclamation_mark``: as Unicode calls it."""
    try:
        return full_name(unicodedata.lookup(key.replace("_", " "))) == key
    except (KeyError, ValueError):
        return key in KEY_NAME_REPLACEMENTS.values()


def key_errors(keys: Mapping[str, str], unsure: Collection[str] = ()) -> list[tuple[str, str]]:
    """Actions that a user gave a key, and why it cannot have it: another action keeps it, or what is on the screen has
    it. ``unsure``: actions whose own keys are not known, and so free none and keep none."""
    found = []
    owner = {key: act.id for act in ACTS if act.id not in keys and act.id not in unsure for key in act.keys.split(",")}
    for id, mine in keys.items():
        for key in mine.split(","):
            name = full_name(key)
            if why := _taken(id, key, owner.get(name)) or _used(id, key, name):
                found.append((id, why))
            owner.setdefault(name, id)
    return found


def _taken(id: str, key: str, owner: str | None) -> str:
    if owner is None:
        return ""
    if owner == id:
        return f"{key!r} stands there twice"
    more = ", which keeps it" if owner in FIXED else ": give that another one too"
    return f"{key!r} is the key of {owner}{more}"


def _used(id: str, key: str, name: str) -> str:
    """What else has this key where the action is on."""
    from tui.view.screens.charts import Charts
    from tui.view.screens.confirm import Confirm
    from tui.view.screens.hosts import Hosts, HostSheet

    act = BY_ID[id]
    used: dict[str, tuple[type[DOMNode], ...]] = {"every screen": (Screen,), "the log": (LogPane,)}
    if not of_board(act):
        used |= {"the charts": (Charts,), "the hosts": (Hosts, HostSheet)}
    for where, widgets in used.items():
        if name in _bound(*widgets) and name not in map(full_name, act.keys.split(",")):
            return f"{key!r} is a key of {where}"
    if act.changes and name in _bound(Confirm) and name not in Confirm.NOES:
        return f"{key!r} answers the question before a server is ended: who presses it twice would have said yes"
    return ""


def _bound(*widgets: type[DOMNode]) -> set[str]:
    """The keys that these bind themselves."""
    bindings = Binding.make_bindings([binding for widget in widgets for binding in widget.BINDINGS])
    return {binding.key for binding in bindings}


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
