"""Child processes with a deadline, inside the loop; and the memfd that carries what must not touch a disk."""

from __future__ import annotations

import os
import signal
from collections import deque

from .loop import Loop, nonblocking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping, Sequence

RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP)  # exec would pass on that they are ignored

PR_SET_CHILD_SUBREAPER = 36


def memory_file(name: str, data: bytes) -> int:
    """A descriptor at the start of an anonymous file that holds ``data``."""
    fd = os.memfd_create(name)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def spawn(
    argv: Sequence[str],
    fds: Sequence[int],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    *,
    before: Callable[[], None] | None = None,
) -> int:
    """Fork and exec in a session of its own; ``fds`` become 0, 1, 2 and, beyond those, stay open under their numbers.
    Everything else closes by itself (Python opens close-on-exec). ``before`` is done in the child, whose memory is then
    its own."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for target, fd in enumerate(fds[:3]):
            os.dup2(fd, target)
        for fd in fds[3:]:
            os.set_inheritable(fd, True)
        for number in RESTORED:
            signal.signal(number, signal.SIG_DFL)
        if cwd is not None:
            os.chdir(cwd)
        if before is not None:
            before()
        os.execvpe(argv[0], list(argv), dict(os.environ if env is None else env))
    except BaseException as error:  # whatever it is, the copy of the agent must not live on
        os.write(2, ("%s: %s\n" % (argv[0], error)).encode("utf-8", "replace"))
    finally:
        os._exit(127)


def become_subreaper() -> None:
    """This process, and what it execs, gets the orphans below it."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


class Children:
    """Reaps what was spawned, so that no zombies stay while the agent lives."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._pids: set[int] = set()

    def add(self, pid: int) -> None:
        if not self._pids:
            self._loop.later(1.0, self._reap)
        self._pids.add(pid)

    def _reap(self) -> None:
        for pid in list(self._pids):
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    self._pids.discard(pid)
            except ChildProcessError:
                self._pids.discard(pid)
        if self._pids:
            self._loop.later(1.0, self._reap)


class Turnstile:
    """Lets at most ``places`` in at once; the others in the order in which they came."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._waiting: deque[Callable[[], None]] = deque()

    def enter(self, begin: Callable[[], None]) -> None:
        """``begin`` is called now or later; whatever it begins calls ``leave`` at its end."""
        if self._places:
            self._places -= 1
            begin()
        else:
            self._waiting.append(begin)

    def leave(self) -> None:
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._places += 1


class Job:
    """Runs a command; ``done(status, output)`` is called once: status ``None`` means the deadline ended it."""

    def __init__(
        self,
        loop: Loop,
        children: Children,
        argv: Sequence[str],
        done: Callable[[int | None, bytes], None],
        *,
        stdin: bytes = b"",
        timeout: float = 5.0,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limit: int = 1 << 20,
    ) -> None:
        self._loop, self._children, self._done, self._limit = loop, children, done, limit
        self._output = bytearray()
        self._fd, write = os.pipe()
        source = memory_file("hcs-job", stdin)
        self._pid = spawn(argv, (source, write, write), env, cwd)
        os.close(source)
        os.close(write)
        nonblocking(self._fd)
        loop.watch(self._fd, self._on_output)
        self._timer = loop.later(timeout, self._on_deadline)

    def _on_output(self, event: int) -> None:
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return
        if data:
            self._output += data[: self._limit - len(self._output)]
        else:
            self._finish()

    def _finish(self) -> None:
        self._loop.unwatch(self._fd)
        os.close(self._fd)
        self._timer.cancel()
        self._await_exit(20)

    def _await_exit(self, tries: int) -> None:
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self._pid, 0
        if pid:
            self._done(os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status), bytes(self._output))
        elif tries:
            self._loop.later(0.01, lambda: self._await_exit(tries - 1))
        else:  # closed its output, yet lives
            self._kill()

    def _on_deadline(self) -> None:
        self._loop.unwatch(self._fd)
        os.close(self._fd)
        self._kill()

    def _kill(self) -> None:
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except OSError:
            pass
        self._children.add(self._pid)
        self._done(None, bytes(self._output))
