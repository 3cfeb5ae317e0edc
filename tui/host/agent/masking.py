"""What must never be written: the secrets that a launch names, and values of flags that carry keys."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence


MASK = "***"
SECRET_FLAGS = ("api-key", "admin-api-key", "ssl-keyfile-password")


class Masker:
    """Replaces secrets in texts and argument lists."""

    def __init__(self, values: Sequence[str], flags: Sequence[str]) -> None:
        self._values = sorted((value for value in values if value), key=len, reverse=True)
        self._flags = {_plain(flag) for flag in flags}

    def text(self, text: str | None) -> str | None:
        for value in self._values if text else ():
            text = text.replace(value, MASK) if text else text
        return text

    def argv(self, argv: Sequence[str]) -> list[str]:
        out: list[str] = []
        hide_next = False
        for word in argv:
            flag, equals, _ = word.partition("=")
            if hide_next:
                out.append(MASK)
                hide_next = False
                continue
            secret = word.startswith("-") and _plain(flag) in self._flags
            hide_next = secret and not equals
            out.append(flag + "=" + MASK if secret and equals else self.text(word) or word)
        return out


def is_secret_flag(flag: str) -> bool:
    """Whether a flag carries a key."""
    return _plain(flag) in SECRET_FLAGS


def _plain(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-").lower()


def masked(spec: Mapping[str, Any]) -> Masker:
    """The masker of a launch: its ``secrets``, wherever they stand, and the values of flags that carry keys."""
    return Masker([str(value) for value in spec.get("secrets") or ()], SECRET_FLAGS)


def value(argv: Sequence[str], name: str) -> str | None:
    """The last value of a flag: ``--name VALUE`` or ``--name=VALUE``."""
    found = None
    for at, word in enumerate(argv):
        flag, equals, text = word.partition("=")
        if word.startswith("-") and _plain(flag) == name:
            found = text if equals else "".join(argv[at + 1 : at + 2])
    return found
