"""Secrets out of lines: whatever leaves the raw spool passes through here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

MASK = b"****"
SHORTEST = 6  # characters; a shorter secret would mask half of every line
_HINT = re.compile(
    rb"[Kk]ey|KEY|[Ss]ecret|SECRET|[Pp]assw|PASSW|[Bb]earer|[Aa]uthorization|_token|TOKEN|-token[ =]|[^#\w-]token['\"=]|hf_|sk-|ghp_|://[^/\s]{1,80}@"
)
_SECRET_NAME = (
    rb"[\w-]{0,60}(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|passwd|password|"
    rb"(?:hf|hub|auth|access|api|session|refresh|github|gh|wandb)[_-]?token)[\w-]{0,40}|(?<![#\w-])token"
)
_PATTERNS = (
    # key='value' and 'key': 'value' of dumps; "key": "value" of JSON
    re.compile(
        rb"(?i)((?:['\"]|\b)(?:"
        + _SECRET_NAME
        + rb")['\"]?\s{0,4}[=:]\s{0,4})(['\"])(?!None|\$\w{1,80}\2)(?:[^'\"\\]|\\.){1,4096}?\2"
    ),
    # KEY=value of environments
    re.compile(
        rb"(?i)(\b(?:"
        + _SECRET_NAME
        + rb")\s{0,4}=\s{0,4})()(?!None\b|True\b|False\b|\d{1,8}\b|\xe2\x80\xa6)[^\s'\",)}&]{1,4096}"
    ),
    # a command line, also as a list of arguments
    re.compile(
        rb"(?i)(--(?:[\w-]{0,40}-)?(?:api-key|password|secret|token)(?:[ =]|['\"], ?['\"]))"
        rb"()(?!None\b)[^\s'\"]{1,4096}"
    ),
    re.compile(rb"(?i)(\bbearer\s{1,4})()[\w.~+/=-]{4,4096}"),
    re.compile(rb"(?i)(\bauthorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?:basic\s|token\s|digest\s)?)()[^\s'\",]{4,4096}"),
    re.compile(rb"(\b)()(?:hf_[A-Za-z0-9]{16,200}|sk-[A-Za-z0-9_-]{16,200}|ghp_[A-Za-z0-9]{16,200})"),
    re.compile(rb"(://[^/\s:@]{1,80}:)()[^/\s@]{1,200}(?=@)"),
)

_learned: set[bytes] = set()
_known: re.Pattern[bytes] | None = None


def learn(secrets: Iterable[str]) -> None:
    """From now on these values are masked in this process wherever they stand, whatever they look like; also the
    password of a URL and the texts of a JSON object. Learned for good: a line may leave by any thread."""
    global _known
    forms = {form.encode() for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
    if forms - _learned:
        _learned.update(forms)
        _known = re.compile(b"|".join(re.escape(form) for form in sorted(_learned, key=len, reverse=True)))


def _forms(secret: str) -> Iterator[str]:
    """A secret as logs write it: plain, in JSON and Python strings; and what of it is secret by itself."""
    yield from (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1])
    if url := re.match(r"\w+://[^/\s:@]*:([^/\s]+)@", secret):
        yield url[1]
    if secret.startswith(("{", "[")):
        try:
            value = json.loads(secret)
        except ValueError:
            return
        for leaf in _leaves(value):
            yield from _forms(leaf)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


def mask(line: bytes) -> bytes:
    """``line`` with every value that looks like a key, token or password, or was learned, replaced by ``****``."""
    if _known is not None:
        line = _known.sub(MASK, line)
    if _HINT.search(line) is None:
        return line
    for pattern in _PATTERNS:
        line = pattern.sub(rb"\1\2" + MASK + rb"\2", line)
    return line


def mask_text(text: str) -> str:
    """``mask`` for text."""
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def is_secret_name(name: str) -> bool:
    """Whether a flag or variable of this name holds a secret."""
    return re.fullmatch(_SECRET_NAME, name.encode("utf-8", "replace"), re.IGNORECASE) is not None
