"""The last thing that happens to any text before it leaves: known secrets are masked, and nothing is left in it that a
terminal would obey or that would turn the reading order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tui.sglang.mask import mask_text
from tui.sglang.safe import UNSAFE, safe


def clean(text: str) -> str:
    """Text for people. Line ends and tabs stay."""
    return safe(mask_text(text))


def json_text(value: object, indent: int | None = None, default: Callable[[object], object] | None = None) -> str:
    """JSON for scripts, which a terminal may show as well: what it would obey is written as ``\\uXXXX``."""
    text = json.dumps(_masked(value), ensure_ascii=False, indent=indent, default=default)
    return UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _masked(value: object) -> object:
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value
