"""Secrets out of lines: whatever leaves the raw spool passes through here."""

from __future__ import annotations

import re

MASK = b"****"
_HINT = re.compile(
    rb"[Kk]ey|KEY|[Ss]ecret|SECRET|[Pp]assw|PASSW|[Bb]earer|_token|TOKEN|-token[ =]|[^#\w-]token['\"=]|hf_|sk-|ghp_|://[^/\s]{1,80}@"
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
        + rb")['\"]?\s{0,4}[=:]\s{0,4})(['\"])(?!None)(?:[^'\"\\]|\\.){1,4096}?\2"
    ),
    # KEY=value of environments
    re.compile(
        rb"(?i)(\b(?:" + _SECRET_NAME + rb")\s{0,4}=\s{0,4})()(?!None\b|True\b|False\b|\d{1,8}\b)[^\s'\",)}&]{1,4096}"
    ),
    # a command line, also as a list of arguments
    re.compile(
        rb"(?i)(--(?:[\w-]{0,40}-)?(?:api-key|password|secret|token)(?:[ =]|['\"], ?['\"]))"
        rb"()(?!None\b)[^\s'\"]{1,4096}"
    ),
    re.compile(rb"(?i)(\bbearer\s{1,4})()[\w.~+/=-]{4,4096}"),
    re.compile(rb"(\b)()(?:hf_[A-Za-z0-9]{16,200}|sk-[A-Za-z0-9_-]{16,200}|ghp_[A-Za-z0-9]{16,200})"),
    re.compile(rb"(://[^/\s:@]{1,80}:)()[^/\s@]{1,200}(?=@)"),
)


def mask(line: bytes) -> bytes:
    """``line`` with every value that looks like a key, token or password replaced by ``****``."""
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
