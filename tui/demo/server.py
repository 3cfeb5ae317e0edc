"""A simulated SGLang server: ``python -m tui.demo.server --scenario hicache --port 30000``.

A real process with real children (scheduler, detokenizer) that prints what a chosen SGLang release prints, at the
pace of a scenario, answers on its port, and obeys signals. It uses no GPU and next to no memory.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from tui.demo.arguments import Options, parse
from tui.demo.lines import PROCESS
from tui.demo.process import Channel, die_with_parent, exit_code, name_process, raw, record, silence
from tui.demo.scheduler import Scheduler
from tui.demo.tracebacks import rank_died

_URGENT = frozenset({"sigquit_launching", "sigquit_serving", "child_died", "rank_dead", "exit_code"})


@dataclass(frozen=True, slots=True)
class Child:
    """A child process, by the name that SGLang's watchdog uses."""

    name: str
    pid: int


class Tree:
    """The main process's view of its children."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.children: list[Child] = []
        self.loading = True
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        main = os.getpid()
        for rank in range(options.ranks):
            title = f"sglang::scheduler_TP{rank}" if options.ranks > 1 else "sglang::scheduler"
            end = Channel(theirs) if rank == 0 else None
            self._fork(f"scheduler_{rank}", title, Scheduler(options, rank, main, end).run)
            theirs.close()  # rank 0 alone holds it now, so that its death is seen
        self._fork("detokenizer", "sglang::detokenizer", _wait_for_host)

    def _fork(self, name: str, title: str, work: Callable[[], None]) -> None:
        main = os.getpid()
        pid = os.fork()
        if pid:
            self.children.append(Child(name, pid))
            return
        status = 1
        try:
            for number in (signal.SIGQUIT, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            die_with_parent(main)
            name_process(title)
            self.channel.socket.close()  # the main process alone may hold this end
            work()
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)

    def say(self, name: str, **values: object) -> None:
        """Print a line of the main process, if the release has it."""
        text = self.options.dialect.say(PROCESS, name, **values)
        if text:
            record(text, urgent=name in _URGENT)

    def kill(self, *, itself: bool) -> None:
        """SIGKILL to all children, and to the main process itself as SGLang does after any failure."""
        self.say("kill_tree", pid=os.getpid(), parent=itself)
        for child in self.children:
            try:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue
        self.children.clear()
        if itself:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_sigquit(self, number: int, frame: FrameType | None) -> None:
        """A child failed, or somebody says so: everything goes, this process included."""
        self.say("sigquit_launching" if self.loading else "sigquit_serving")
        self.kill(itself=True)

    def wait_until_ready(self) -> float:
        """Wait for the scheduler's word: how many seconds it took. Exits with status 1 when it dies first."""
        while True:
            select.select([self.channel.socket], [], [])
            try:
                for message in self.channel.receive():
                    if "ready" in message:
                        return float(message["seconds"])
            except EOFError:
                self._rank_died()

    def _rank_died(self) -> None:
        _, status = os.waitpid(self.children[0].pid, 0)
        code = exit_code(status)
        self.children.pop(0)
        self.say("kill_tree", pid=os.getpid(), parent=False)
        self.say("rank_dead")
        self.say("exit_code", code=code)
        raw(rank_died(self.options.dialect.say(PROCESS, "rank_died", code=code)))
        sys.exit(1)


def _wait_for_host() -> None:
    """The detokenizer's only work: the demo's servers must not outlive the demo, however its host ends."""
    host = int(os.environ.get("HCS_DEMO_HOST_PID", "0"))
    if not host:
        while True:
            signal.pause()
    try:
        select.select([os.pidfd_open(host)], [], [])
    except OSError:
        pass  # it is gone already
    os.kill(os.getppid(), signal.SIGKILL)


def main(argv: list[str]) -> int:
    """Run a server to its end; the status is SGLang's for that release."""
    options = parse(argv)
    time.sleep(options.scenario.pace.imports / options.speed)
    if options.flags["log_level"] in ("warning", "error", "critical"):
        silence()
    entry = options.dialect.say(PROCESS, "entry")
    if entry:
        raw(entry + "\n")
    record(options.dump())
    template = options.dialect.say(PROCESS, "template")
    if template:
        record(template)
    tree = Tree(options)
    signal.signal(signal.SIGQUIT, tree.on_sigquit)
    try:
        seconds = tree.wait_until_ready()
        from tui.demo.serving import serve  # asyncio, which loading does not need

        return serve(tree, seconds)
    except KeyboardInterrupt:
        raw("KeyboardInterrupt\n")
        tree.kill(itself=False)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
