"""The serving part of a simulated server's main process: uvicorn's words, warm-up, children, ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from dataclasses import replace

from tui.demo.http import Answer, Asked, ask, read_request, write_answer
from tui.demo.process import STDOUT, exit_code, record
from tui.demo.requests import Requests
from tui.demo.routes import Routes
from tui.demo.server import Tree
from tui.demo.tracebacks import WARMUP_FAILED

_PORT_TAKEN_SECONDS = 120.0  # how long SGLang's warm-up asks the stranger on its port before it gives up
_DIAGNOSTICS_SECONDS = 5.0
_DRAIN_SECONDS = 5.0
_FIRST_DRAIN_SECONDS = 1.0


def serve(tree: Tree, seconds: float) -> int:
    """Serve until the end, after a load of ``seconds``. Returns the status, or dies by SIGKILL, as the release does."""

    async def run() -> int:
        return await _Serving(tree).run(seconds)

    return asyncio.run(run())


def _uvicorn(text: str, level: str = "INFO", stream: int = 2) -> None:
    """One of uvicorn's own lines."""
    record(f"{level + ':':9} {text}", stream=stream, urgent=level == "ERROR")


class _Serving:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.options = tree.options
        self.loop = asyncio.get_running_loop()
        self.requests = Requests(tree.channel, self.options.seed)
        self.routes = Routes(self.options, self.requests)
        self.ended: asyncio.Future[int] = self.loop.create_future()
        self.tasks: set[asyncio.Task[None]] = set()
        self.crashing = False

    async def run(self, seconds: float) -> int:
        self._watch()
        pace, speed = self.options.scenario.pace, self.options.speed
        self.tree.say(
            "timings", weights=pace.weights / speed, pools=pace.pools / speed, graphs=pace.graphs / speed, total=seconds
        )
        _uvicorn(f"Started server process [{os.getpid()}]")
        _uvicorn("Waiting for application startup.")
        _uvicorn("Application startup complete.")
        try:
            server = await self._listen()
        except OSError:
            return await self._port_taken()
        self.tree.loading = False
        _uvicorn(f"Uvicorn running on http://{self.options.host}:{self.options.port} (Press CTRL+C to quit)")
        self._spawn(self._warm_up())
        async with server:
            return await self.ended

    def _watch(self) -> None:
        self.loop.add_reader(self.tree.channel.socket, self._receive)
        self.loop.add_signal_handler(signal.SIGCHLD, self._reap)
        self.loop.add_signal_handler(signal.SIGTERM, self._on_sigterm)
        self.loop.add_signal_handler(signal.SIGINT, self._stop)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _listen(self) -> asyncio.Server:
        if self.options.scenario.ending == "port_taken":
            raise OSError("somebody else has the port")
        return await asyncio.start_server(self._connected, self.options.host, self.options.port, limit=1 << 20)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("peername")[:2]
        try:
            asked = await read_request(reader)
            if asked is not None:
                answer = await self.routes.answer(asked)
                self._access(f"{host}:{port}", asked, answer)
                await write_answer(writer, replace(answer, draining=self.routes.draining))
        except ConnectionError:
            pass  # the client left
        finally:
            writer.close()

    def _access(self, peer: str, asked: Asked, answer: Answer) -> None:
        """An access line, unless the flags hide it."""
        level = self.options.flags["log_level_http"] or self.options.flags["log_level"]
        given = self.options.flags.get("uvicorn_access_log_exclude_prefixes")
        hidden = tuple(map(str, given)) if isinstance(given, list) else ()
        if level in ("info", "debug") and not asked.path.startswith(hidden):
            _uvicorn(f'{peer} - "{asked.method} {asked.path} HTTP/1.1" {answer.reason}', stream=STDOUT)

    async def _warm_up(self) -> None:
        """SGLang asks itself, over its own port, before it calls itself ready."""
        if not self.options.flags["skip_server_warmup"]:
            info = "/model_info" if self.options.dialect.since("0.5.7") else "/get_model_info"
            await asyncio.sleep(self.options.scenario.pace.warmup / 2 / self.options.speed)
            await self._ask("GET", info)
            await self._ask(
                "POST",
                "/generate",
                b'{"text": "The capital city of France is", "sampling_params": {"max_new_tokens": 8}}',
            )
            if self.options.dialect.since("0.5.18"):
                await self._ask("POST", "/freeze_gc")
        self.routes.warm = True
        self.tree.say("ready")

    async def _ask(self, method: str, path: str, body: bytes = b"") -> None:
        key = self.options.flags.get("api_key")
        await ask(self.options.host, self.options.port, method, path, body, f"Bearer {key}" if key else "")

    def _receive(self) -> None:
        try:
            for message in self.tree.channel.receive():
                self.requests.receive(message)
        except EOFError:
            self.loop.remove_reader(self.tree.channel.socket)  # its end is told by SIGCHLD

    def _reap(self) -> None:
        for child in list(self.tree.children):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self.tree.children.remove(child)
                self._spawn(self._child_died(child.name, pid, exit_code(status)))

    async def _child_died(self, name: str, pid: int, code: int) -> None:
        """Releases since 0.5.10 end at once; the older ones warn at most, and stay up without their child."""
        if self.crashing:
            return
        self.tree.say("child_died", child=name, pid=pid, code=code)
        if not self.options.dialect.since("0.5.10"):
            return
        self.crashing = True
        self.tree.say("sigquit_serving")
        if self.options.dialect.since("0.5.20"):
            self.tree.say("crash_diagnostics")
            await asyncio.sleep(_DIAGNOSTICS_SECONDS / self.options.speed)
        self.tree.kill(itself=True)

    def _on_sigterm(self) -> None:
        """uvicorn's handler until the first request, SGLang's from then on."""
        if not self.routes.asked_once:
            self._stop()
        elif not self.routes.draining:
            self.routes.draining = True
            self.tree.say("sigterm")
            self._spawn(self._drain())

    async def _drain(self) -> None:
        first = _FIRST_DRAIN_SECONDS if self.options.dialect.since("0.5.9") else _DRAIN_SECONDS
        await asyncio.sleep(first / self.options.speed)
        while not self.crashing:
            rids = list(self.requests.waiting)
            self.tree.say("draining", count=len(rids), rids=rids)
            if not rids:
                break
            await asyncio.sleep(_DRAIN_SECONDS / self.options.speed)
        if self.crashing:
            return  # a child's death ends the tree
        if self.options.dialect.since("0.5.19"):
            self.tree.kill(itself=False)
            self._stop()
        else:
            self.tree.kill(itself=True)

    def _stop(self) -> None:
        """uvicorn ends, then the children, with status 0."""
        if self.ended.done():
            return
        _uvicorn("Shutting down")
        _uvicorn("Waiting for application shutdown.")
        _uvicorn("Application shutdown complete.")
        _uvicorn(f"Finished server process [{os.getpid()}]")
        self.tree.kill(itself=False)
        self.ended.set_result(0)

    async def _port_taken(self) -> int:
        """The end of uvicorn, and not of the process: SIGTERM does nothing, and only a failed warm-up ends it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, lambda: None)
        address = (self.options.host, self.options.port)
        _uvicorn(f"[Errno 98] error while attempting to bind on address {address}: address already in use", "ERROR")
        _uvicorn("Waiting for application shutdown.")
        await asyncio.sleep(_PORT_TAKEN_SECONDS)
        record(WARMUP_FAILED, urgent=True)
        self.tree.kill(itself=True)
        return 1
