"""One Supervisor per server: turns what its host says into events; its ``actions`` become requests to the host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from tui.fleet import translate
from tui.fleet.actions import Actions
from tui.fleet.background import later
from tui.fleet.history import StageHistory
from tui.fleet.intake import LogIntake
from tui.fleet.logreader import spooled_reader
from tui.fleet.places import Places
from tui.fleet.probe import HttpProbe, wants_http
from tui.fleet.turns import Turn, Turns
from tui.host.api import (
    Hello,
    HostError,
    Link,
    LogBytes,
    RunEnded,
    RunRecord,
    RunWatch,
)
from tui.profile.model import Server
from tui.sglang import verdict
from tui.sglang.events import (
    Event,
    Exited,
    Launched,
    LogRead,
    Noted,
    StopAsked,
    Vanished,
    Watched,
)
from tui.sglang.facts import LogFacts
from tui.sglang.model import Phase, RunInfo, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

_DRAIN_SECONDS = 2.0  # how long an end waits for the last bytes of its log, which explain it


class Supervisor:
    """Everything about one server on this side. All methods belong to the fleet's event loop."""

    def __init__(
        self,
        profile: str,
        server: Server,
        link: Link,
        places: Places,
        *,
        clock: Callable[[], float],
        changed: Callable[[Supervisor, ServerState, Event], None],
        turns: Turns | None = None,
        info: ServerInfo | None = None,
    ) -> None:
        self.profile = profile
        self.server = server
        self.link = link
        self.state = ServerState(info=info or translate.server_info(server))
        self._places = places
        self._clock = clock
        self._changed = changed
        self._history = StageHistory(places.history / profile / f"{server.name}.json")
        self._intake: LogIntake | None = None
        self._ended: RunEnded | None = None
        self._drain: asyncio.TimerHandle | None = None
        self._lived = False  # whether it lived then
        self._probe = HttpProbe(self)
        self.actions = Actions(self, Turn(turns or Turns(0.0)))

    @property
    def now(self) -> float:
        return self._clock()

    @property
    def known(self) -> bool:
        """Whether the state tells all that the host knew of the run when it was adopted. Of a run that lives, the
        middle of a long log may be missing; what explains an end may be anywhere."""
        if self._intake is None and (self.state.run is None or self.state.run.log):
            return True
        over = self.state.exit is not None or self.state.vanished
        if over and self._intake and not self._intake.whole:
            return False
        lives = self._lived and self.state.listening is not None
        if (self._intake and not self._intake.caught_up) or not (over or lives):
            return False
        return not wants_http(self.state) or self.state.http_ready is not None

    @property
    def running(self) -> bool:
        return verdict.phase(self.state) in (Phase.STARTING, Phase.READY, Phase.STOPPING) or self.state.alive is True

    @property
    def log_path(self) -> Path | None:
        return self._intake.reader.shown if self._intake else None

    def apply(self, event: Event) -> None:
        """The only place where this server's state changes."""
        before = self.state
        self.state = reduce(before, event)
        if verdict.phase(before) is not Phase.READY and verdict.phase(self.state) is Phase.READY:
            self._remember_stages()
        self._changed(self, before, event)

    # What the host says

    def follows(self, run: str) -> bool:
        """Whether ``run`` is this server's current one."""
        return self.state.run is not None and self.state.run.run == run

    def on_event(self, event: LogBytes | RunWatch | RunEnded) -> None:
        """Take what the host says of the current run."""
        if isinstance(event, LogBytes):
            self._on_log(event)
        elif isinstance(event, RunWatch):
            self._on_watch(event)
        else:
            self._on_ended(event)

    def _on_log(self, event: LogBytes) -> None:
        """Spool and read a stretch of the current run's log."""
        if self._intake is None:
            event.handled()
            return
        self._on_facts(self._intake.take(event))

    def _on_facts(self, facts: LogFacts | None) -> None:
        if facts is not None:
            self.apply(LogRead(self.now, facts))
        self._note_trouble()
        self._end_if_drained()

    def _on_watch(self, event: RunWatch) -> None:
        foreign_before = self.state.listening == "foreign"
        self.apply(translate.watched(self.now, event))
        if event.listening == "foreign" and not foreign_before and event.listener:
            self.apply(Noted(self.now, f"port {self.server.port} belongs to {event.listener}, not to this run"))
        self._probe.consider()

    def _on_ended(self, event: RunEnded) -> None:
        if self._ended:
            return
        self._ended = event
        self._end_if_drained()
        if self._ended:
            self._drain = asyncio.get_running_loop().call_later(_DRAIN_SECONDS, self._end)

    def _end_if_drained(self) -> None:
        if self._ended and self._intake and self._intake.reader.offset >= (self._ended.log_size or 0):
            self._end()

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if self._drain:
            self._drain.cancel()
            self._drain = None
        if ended:
            self._probe.stop()
            later(self._conclude(ended))

    async def _conclude(self, ended: RunEnded) -> None:
        """Say the end; first ask whether somebody else asked for it, which would make it no failure."""
        lost = ""
        if self.state.stop_asked is None:
            with contextlib.suppress(HostError):
                for record in await self.link.runs(self.profile, self.server.name):
                    if record.run == ended.run and self.follows(ended.run):
                        if record.stop_asked:
                            self.apply(StopAsked(record.stop_asked))
                        if ended.exit is None and (lost := translate.lost_words(record.fate)):
                            self.apply(Noted(self.now, lost))
        if self.follows(ended.run):
            self.apply(Exited(self.now, translate.run_exit(ended.exit)) if ended.exit else Vanished(self.now, lost))

    async def adopt(self, record: RunRecord, hello: Hello) -> None:
        """Take over a run found on the host, alive or ended, with its whole log."""
        if self.follows(record.run):
            if record.stop_asked and not self.state.stop_asked:
                self.apply(StopAsked(record.stop_asked))
            return
        await self.begin(record, hello, adopted=True)
        if record.exit is None and (lost := translate.lost_words(record.fate)):
            self.apply(Noted(self.now, lost))
        if record.trouble:
            self.apply(Noted(self.now, record.trouble))
        if record.alive and (others := translate.other_arguments(self.server, record)):
            self.apply(Noted(self.now, f"runs with other arguments than the profile's: {others}"))

    async def find(self, record: RunRecord, hello: Hello, remarks: Iterable[str]) -> None:
        """Follow a server that somebody else started."""
        await self.begin(record, hello, adopted=True)
        for remark in remarks:
            self.apply(Noted(self.now, remark))

    async def begin(self, record: RunRecord, hello: Hello, *, adopted: bool) -> None:
        """Watch a run from now on, and read its log. Raises ``HostError``."""
        self.forget()
        run = RunInfo(
            record.run,
            record.pid,
            record.started,
            record.argv,
            record.log,
            boot_id=record.boot_id,
            utc_offset=hello.utc_offset,
            adopted=adopted,
            sglang=record.sglang,
            who=record.who,
        )
        spooled = self._open_log(record) if record.log else None
        self._lived = record.alive
        info = self.state.info if self.state.info.stranger else translate.server_info(self.server, record.sglang)
        self.apply(Launched(self.now, run, self._history.load(), info))
        if record.stop_asked:
            self.apply(StopAsked(record.stop_asked))
        if spooled is not None:
            self.apply(LogRead(self.now, spooled))
        self._note_trouble()
        if record.alive:
            self.apply(Watched(self.now, alive=True))
        try:
            if self._intake:
                await self._intake.begin()
        finally:  # a link that is lost at this moment remembers what it was asked
            await self.link.watch(record.run)

    def _open_log(self, record: RunRecord) -> LogFacts | None:
        """Prepare to take the run's log; what an earlier session spooled of it."""
        reader = spooled_reader(self._places.spool, self.profile, self.server.name, record.run)
        spooled = reader.open(record.log_size)
        self._intake = LogIntake(self.link, record, reader, self._on_facts)
        return spooled

    def close(self) -> None:
        """Let go of everything on this side; the run itself is not touched."""
        self._probe.stop()
        if self._drain:
            self._drain.cancel()
        self._ended = self._drain = None
        if self._intake:
            self._intake.close()
            self._intake = None

    def forget(self) -> None:
        """Watch the current run no longer."""
        self.close()
        if self.state.run:
            later(self._unwatch(self.state.run.run))

    async def _unwatch(self, run: str) -> None:
        await self.link.unfollow(run)
        await self.link.unwatch(run)

    # Small things

    def _note_trouble(self) -> None:
        reader = self._intake and self._intake.reader
        if reader and reader.trouble and reader.trouble not in self.state.notes:
            self.apply(Noted(self.now, reader.trouble))

    def _remember_stages(self) -> None:
        stages = tuple((s.stage.value, s.seconds) for s in verdict.stages(self.state) if s.seconds is not None)
        if self.state.run and stages:
            self._history.save(self.state.run.run, stages)
