"""A request of the other side, and the agent that it is put to."""

from __future__ import annotations

import json

from .jobs import Children, Turnstile
from .loop import Loop
from .procs import Scanner
from .runs import Runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

LOOKS = 4  # fresh processes at once: those of hundreds of kills would starve the agent, and its silence is a dead link


class Refused(Exception):
    """A request that cannot be done: what is wrong, what to do about it, and the kind of failure of a launch."""

    def __init__(self, message: str, remedy: str = "", failure: str = "other") -> None:
        super().__init__(message)
        self.message, self.remedy, self.failure = message, remedy, failure


class Agent:
    """What all requests share."""

    def __init__(self, loop: Loop, sources: Mapping[str, str], config: Mapping[str, Any]) -> None:
        self.loop = loop
        self.sources = sources
        self.config = config
        self.runs = Runs(config.get("state_dir"))
        self.children = Children(loop)
        self.looks = Turnstile(LOOKS)
        self.scanner = Scanner()
        self.seen: dict[str, dict[int, int]] = {}  # by watched run: pid -> start of all that were seen to be of it


class Request:
    """One question; answer it once, now or later."""

    def __init__(self, agent: Agent, header: Mapping[str, Any], body: bytes) -> None:
        self.agent = agent
        self.header = header
        self.body = body

    def json(self) -> dict[str, Any]:
        value = json.loads(self.body)
        return value if isinstance(value, dict) else {}

    def answer(self, value: Any = None) -> None:
        self.raw({}, json.dumps(value).encode("ascii"))

    def raw(self, extra: Mapping[str, Any], body: bytes) -> None:
        self.agent.loop.send(dict(extra, t="reply", id=self.header.get("id"), ok=True), body)

    def refuse(self, error: Refused) -> None:
        value = {"message": error.message, "remedy": error.remedy, "failure": error.failure}
        header = {"t": "reply", "id": self.header.get("id"), "ok": False}
        self.agent.loop.send(header, json.dumps(value).encode("ascii"))

    def folder(self) -> str:
        """The directory of the run that the request names. Raises ``Refused``."""
        run = str(self.header.get("run"))
        folder = self.agent.runs.find(run)
        if folder is None:
            raise Refused("There is no run %s on this host." % run, "List the runs; it may have been pruned.")
        return folder
