"""How a server's restarts stand: part of its state, decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restarts:
    """The restart policy of one server, who carries it out, and what comes next. Times are Unix seconds.

    ``by`` is ``None`` while nobody has asked the host, and empty when no open session restarts.
    """

    policy: str = "never"  # never | on-failure | always
    by: str | None = None  # who restarts: user@machine and pid of that session
    here: bool = False  # it is this session
    since: float | None = None  # when that session took it up
    count: int = 0  # restarts since somebody launched the server, of those that the limit counts
    limit: int = 0  # restarts after which it gives up
    pending: bool = False  # a restart is to come, whoever carries it out
    next_at: float | None = None  # when the next attempt of who restarts is due
    ends_at: float | None = None  # when this session ends what is left of it: it has failed, and lives on
    why: str = ""  # why it will be restarted, or why it will not be
