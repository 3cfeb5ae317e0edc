"""Who restarts a server: at most one session, the one whose agent holds the lock beside the server's runs.

The lock is a flock of the agent's own process, so it ends with the session however that ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from . import procs
from .files import open_regular, private_dirs
from .recorded import load
from .requests import Agent, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "restarts.lock"


class Leases:
    """The leases that this agent holds. They are never given back: a session restarts for as long as it lives."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._held: dict[str, tuple[int, dict[str, Any]]] = {}  # path -> descriptor, and what stands in the file
        agent.loop.on_part.append(self._release)

    def _release(self) -> None:
        """What outlives the channel restarts nothing."""
        for fd, _ in self._held.values():
            os.close(fd)

    def look(self, request: Request) -> None:
        """Answer, by server, who restarts it: ``who`` (empty: nobody), ``since``, ``mine``, and what that session told
        of it last."""
        self._answer(request, take=False)

    def take(self, request: Request) -> None:
        """The same, after taking what is free. ``told``, by server: for others to read, of what is held here. Raises
        ``OSError`` where the folder cannot be written."""
        self._answer(request, take=True)

    def _answer(self, request: Request, take: bool) -> None:
        header = request.header
        request.answer({name: self._one(header, name, take) for name in header["servers"]})

    def _one(self, header: Any, server: str, take: bool) -> dict[str, Any]:
        folder = self._agent.runs.server_dir(header["profile"], server)
        path = os.path.join(folder, NAME)
        if path not in self._held and take:
            private_dirs(folder)
            self._take(path, str(header.get("who", "")))
        if path not in self._held:
            return dict(holder(path), mine=False)
        fd, mark = self._held[path]
        told = header.get("told", {}).get(server)
        if told is not None and told != mark["told"]:
            mark["told"] = told
            write(fd, mark)
        return {"mine": True, "who": header.get("who", ""), "since": mark["since"]}

    def _take(self, path: str, who: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return
        me, since = procs.look(os.getpid()), time.time()
        mark = {"who": who, "since": since, "pid": os.getpid(), "start": me.start if me else 0, "told": {}}
        self._held[path] = fd, mark  # stays open for the life of this process
        write(fd, mark)


def write(fd: int, mark: dict[str, Any]) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(mark).encode("ascii"), 0)


def holder(path: str) -> dict[str, Any]:
    """Who holds the lock at ``path``; its file alone proves nothing, since it outlives its holder."""
    nobody: dict[str, Any] = {"who": "", "since": None, "told": {}}
    try:
        fd = open_regular(path)
    except OSError:
        return nobody
    if fd is None:
        return nobody
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return nobody
    except BlockingIOError:
        told = load(os.path.dirname(path), NAME).fields or {}
    finally:
        os.close(fd)
    lives = procs.is_alive(told.get("pid"), told.get("start"))
    if not lives:
        return {"who": "somebody", "since": None, "told": {}}
    return {"who": told.get("who") or "somebody", "since": told.get("since"), "told": told.get("told") or {}}
