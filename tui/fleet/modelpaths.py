"""Where on a host the models of servers lie."""

from __future__ import annotations

from collections.abc import Iterable

from tui.profile.model import Server

_HUB = "~/.cache/huggingface"


def model_paths(servers: Iterable[Server]) -> tuple[str, ...]:
    """The folders of models, each once: a path as the flags have it, else the hub's cache."""
    return tuple(dict.fromkeys(path for server in servers if (path := _path(server))))


def _path(server: Server) -> str | None:
    model = server.model
    if model is None:
        return None
    if model.startswith(("/", "~")):
        return model
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        value = server.env.get(name)
        if isinstance(value, str) and value.startswith(("/", "~")):
            return value
    return _HUB
