"""One agent behind one channel: bootstrap, requests and answers, log credit, pings."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from tui.host import source
from tui.host.agent import frames
from tui.host.api import Hello, HostError, HostErrorKind
from tui.host.awake import SleepWatch
from tui.host.channel import Channel
from tui.host.credit import Credit
from tui.host.forward import Listener

PING_SECONDS = 2.0
SILENCE_SECONDS = 12.0  # without a byte from the agent; pings are answered at once
WAKE_SECONDS = 4.0  # the same after this machine slept, when the connection is most likely gone
MARK_SECONDS = 20.0  # login files may be slow
HELLO_SECONDS = 15.0
REQUEST_SECONDS = 15.0
_READ = 256 << 10

Frame = tuple[dict[str, Any], bytes]


class Session:
    """A running agent. ``on_frame`` gets what comes by itself; ``on_lost`` is called once, when the channel died."""

    def __init__(
        self, name: str, channel: Channel, on_frame: Callable[[Frame], None], on_lost: Callable[[HostError], None]
    ) -> None:
        self.name = name
        self.hello: Hello | None = None
        self._channel = channel
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._decoder = frames.Decoder()
        self._answers: dict[int, asyncio.Future[Frame]] = {}
        self._next_id = 0
        self._credit = Credit()
        self._error: HostError | None = None
        self._heard = 0.0
        self._noise = bytearray()
        self._tasks: list[asyncio.Task[None]] = []
        self.troubles: list[str] = []  # tracebacks of the agent, for bug reports

    @staticmethod
    def fresh_mark() -> str:
        return "HA" + secrets.token_hex(8)

    async def start(self, mark: str, config: Mapping[str, object]) -> Hello:
        """Wait for the mark, send the source, wait for hello. Raises ``HostError``.

        Two steps, because login files may read stdin, or hand it to another shell: what is sent before the mark can
        be lost, or executed.
        """
        rest = await self._until(MARK_SECONDS, mark.encode())
        self._channel.write(source.blob(config))
        data, greeting = rest, None
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                while greeting is None:
                    found = self._decoder.feed(data)
                    greeting = next((body for header, body in found if header.get("t") == "hello"), None)
                    if greeting is None:
                        data = await self._read_some()
        except TimeoutError:
            raise self._no_agent("Python started, but the agent said nothing") from None
        except frames.BadFrame as error:
            raise self._no_agent(str(error)) from error
        self.hello = Hello(**json.loads(greeting))
        self._heard = asyncio.get_running_loop().time()
        self._send({"t": "credit", "n": self._credit.first(self._heard)})
        self._tasks = [asyncio.create_task(self._pump()), asyncio.create_task(self._ping())]
        return self.hello

    async def _until(self, seconds: float, mark: bytes) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                while mark not in self._noise:
                    self._noise += await self._read_some()
                    del self._noise[: -(64 << 10)]
        except TimeoutError:
            raise self._no_agent(f"no answer in {seconds:g} s") from None
        before, _, rest = bytes(self._noise).partition(mark)
        self._noise = bytearray(before)
        return rest

    async def _read_some(self) -> bytes:
        try:
            data = await self._channel.read(_READ)
        except OSError as error:
            raise HostError(HostErrorKind.UNREACHABLE, f"{self.name}: the connection broke: {error}.") from error
        if not data:
            await asyncio.sleep(0.05)  # its stderr may be a moment behind
            raise self._no_agent("the command ended")
        return data

    def _no_agent(self, what: str) -> HostError:
        words = self._channel.last_words()
        if source.NO_PYTHON in words:
            tried = words.rpartition(source.NO_PYTHON)[2].split()
            return HostError(
                HostErrorKind.NO_PYTHON,
                f"{self.name}: there is no Python on the host (tried {', '.join(tried)}).",
                "Install Python 3.8 or newer there, or set `python` of the host to its path.",
            )
        noise = bytes(self._noise).decode("utf-8", "replace").strip()
        last = (words or noise).splitlines()[-3:]
        told = f" It said: {' · '.join(last)[:400]}" if last else ""
        return HostError(
            HostErrorKind.NO_AGENT,
            f"{self.name}: the agent did not come up: {what}.{told}",
            "The login shell must run commands (`ssh HOST true`), and Python there must be 3.8 or newer.",
        )

    async def request(
        self, kind: str, value: Any = None, *, body: bytes = b"", within: float = REQUEST_SECONDS, **header: Any
    ) -> Frame:
        """Ask, and wait for the answer: (header, body). Raises ``HostError``."""
        if self._error is not None:
            raise self._error
        self._next_id += 1
        number = self._next_id
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        if value is not None:
            body = json.dumps(value).encode("ascii")
        try:
            self._send({"t": kind, "id": number, **header}, body)
            async with asyncio.timeout(within):
                found, data = await answer
        except TimeoutError:
            raise HostError(
                HostErrorKind.NO_AGENT, f"{self.name}: no answer to {kind!r} in {within:g} s.", "Try again."
            ) from None
        finally:
            self._answers.pop(number, None)
        if not found.get("ok"):
            told = json.loads(data)
            raise HostError(HostErrorKind.REFUSED, told["message"], told["remedy"], told["failure"])
        return found, data

    async def forward(self, address: str, port: int, local: int) -> Listener:
        """A port of the host on this machine's loopback. Raises ``HostError``."""
        return await self._channel.forward(address, port, local)

    def tell(self, kind: str, **header: Any) -> None:
        """Ask for what needs no answer."""
        self._send({"t": kind, **header})

    def consumed(self, size: int) -> None:
        """``size`` bytes of logs were handled: let the agent send more."""
        grant = self._credit.consumed(size, asyncio.get_running_loop().time())
        if grant and self._error is None:
            self._send({"t": "credit", "n": grant})

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        try:
            self._channel.write(frames.encode(header, body))
        except OSError as error:
            self._lose(HostError(HostErrorKind.UNREACHABLE, f"{self.name}: the connection broke: {error}."))

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                data = await self._channel.read(_READ)
                if not data:
                    words = self._channel.last_words().splitlines()[-1:]
                    told = f" It said: {words[0][:300]}" if words else ""
                    raise HostError(HostErrorKind.UNREACHABLE, f"{self.name}: the agent ended.{told}")
                self._heard = loop.time()
                for frame in self._decoder.feed(data):
                    self._take(frame)
        except HostError as error:
            self._lose(error)
        except frames.BadFrame as error:
            self._lose(HostError(HostErrorKind.UNREACHABLE, f"{self.name}: {error}."))
        except OSError as error:
            self._lose(HostError(HostErrorKind.UNREACHABLE, f"{self.name}: the connection broke: {error}."))

    def _take(self, frame: Frame) -> None:
        header, body = frame
        kind = header.get("t")
        if kind == "reply":
            answer = self._answers.get(header.get("id") or 0)
            if answer is not None and not answer.done():
                answer.set_result(frame)
        elif kind == "trouble":
            self.troubles.append(body.decode("utf-8", "replace"))
        elif kind != "pong":
            self._on_frame(frame)

    async def _ping(self) -> None:
        """Both directions live by this: the agent leaves when it hears nothing, and so do we."""
        loop = asyncio.get_running_loop()
        sleep = SleepWatch()
        count = 0
        while self._error is None:
            count += 1
            self._send({"t": "ping", "n": count})
            slept = loop.time()
            await asyncio.sleep(PING_SECONDS)
            if loop.time() - slept > PING_SECONDS + 2.0:
                self._heard = max(self._heard, slept)  # it was us who stood still
            if sleep.slept():
                self._heard = loop.time() - SILENCE_SECONDS + WAKE_SECONDS
            if loop.time() - self._heard > SILENCE_SECONDS:
                self._lose(
                    HostError(
                        HostErrorKind.UNREACHABLE,
                        f"{self.name}: no answer for {SILENCE_SECONDS:g} s.",
                        "The network or the host hangs.",
                    )
                )

    def _lose(self, error: HostError) -> None:
        if self._error is not None:
            return
        self._error = error
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)
        self._on_lost(error)

    async def close(self) -> None:
        """End the agent; servers live on."""
        self._error = self._error or HostError(HostErrorKind.UNREACHABLE, f"{self.name}: closed.")
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._error)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()
