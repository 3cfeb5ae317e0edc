"""Secrets out of lines: whatever leaves the raw spool passes through here."""

from __future__ import annotations

import re

MASK = b"****"
_HINTS = (b"key", b"KEY", b"oken", b"TOKEN", b"earer", b"hf_", b"sk-", b"secret", b"SECRET", b"assw", b"PASSW")
_SECRET_NAME = rb"[\w-]*(?:api[_-]?key|secret|passwd|password|hf[_-]?token|auth[_-]?token|access[_-]?token)[\w-]*"
_PATTERNS = (
    # server_args: key='value' and 'key': 'value'; environment: KEY=value
    re.compile(rb"(?i)(['\"]?" + _SECRET_NAME + rb"['\"]?\s*[=:]\s*)(['\"])(?!None)(?:[^'\"\\]|\\.){1,4096}?\2"),
    re.compile(rb"(?i)(\b" + _SECRET_NAME + rb"\s*=\s*)()(?!None\b|True\b|False\b|\d{1,8}\b)[^\s'\",)}&]+"),
    # a command line
    re.compile(rb"(?i)(--(?:admin-)?api-key[ =]|--[\w-]*(?:password|secret|token)[ =])()(?!None\b)[^\s'\"]+"),
    re.compile(rb"(?i)(\bbearer\s+)()[\w.~+/=-]{4,}"),
    re.compile(rb"(\b)()(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,})"),
)


def mask(line: bytes) -> bytes:
    """``line`` with every value that looks like a key, token or password replaced by ``****``."""
    if not any(hint in line for hint in _HINTS):
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
