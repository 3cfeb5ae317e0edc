"""Launch a run: refuse what cannot work, take the server's lock, start the keeper, tell what came of it."""

from __future__ import annotations

import fcntl
import json
import marshal
import os
import sys
import time
from _frozen_importlib_external import MAGIC_NUMBER  # importlib.util has it too, at a price

from . import hiding, outcome, preflight, retention
from .files import private_dirs, safe_name, write_file, write_json
from .jobs import become_subreaper, memory_file, spawn
from .loop import monotonic
from .masking import masked
from .packages import sglang_version
from .procs import boot_id
from .recorded import load
from .requests import Agent, Refused, Request
from .trouble import cannot_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

LOCK_PATIENCE = 2.0  # seconds for a keeper to leave
SETUP_PATIENCE = 30.0  # seconds; setup lines that take longer are told by the run's end instead


def launch(request: Request) -> None:
    """Answer with the run's record once the server's program has been started. Raises ``Refused``."""
    spec = request.json()
    env = environment(spec)
    cwd = preflight.working_directory(spec.get("cwd"))
    if not (spec.get("setup") and "/" not in spec["argv"][0]):
        preflight.program(spec["argv"][0], cwd, env)
    _when_unlocked(request, spec, lambda lock: _start(request, spec, env, cwd, lock), monotonic() + LOCK_PATIENCE)


def _when_unlocked(
    request: Request, spec: Mapping[str, Any], go_on: Callable[[int], None], until: float, late: bool = False
) -> None:
    """The keeper of a run that has just ended leaves within milliseconds: wait for that, not for a living server."""
    try:
        agent = request.agent
        server_dir = agent.runs.server_dir(spec["profile"], spec["server"])
        lock = take_lock(server_dir, spec)
        if lock is not None:
            go_on(lock)
        elif preflight.running(agent.runs, spec) or monotonic() >= until:
            raise Refused(*held(agent, server_dir, spec))
        else:
            agent.loop.later(0.02, lambda: _when_unlocked(request, spec, go_on, until, True))
    except Refused as error:
        if not late:
            raise
        request.refuse(error)


def _start(request: Request, spec: Mapping[str, Any], env: dict[str, str], cwd: str, lock: int) -> None:
    agent = request.agent
    server_dir = agent.runs.server_dir(spec["profile"], spec["server"])
    folder = ""
    try:
        preflight.nobody_runs(agent.runs, spec)
        preflight.port_free(spec.get("port"))
        link = preflight.log_link(spec.get("log_link"), cwd)
        run, folder = new_folder(server_dir, env)
        record = asked(spec, run, cwd)
        write_json(os.path.join(folder, "run.json"), record)
        argv = hiding.hide(spec, folder, record["sglang"])
        log = os.path.join(folder, "server.log")
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        preflight.place_link(link, log)
        keeper_spec = {"run": run, "argv": argv, "env": env, "cwd": cwd, "log": log, "setup": spec.get("setup")}
        status, pid = start_keeper(folder, keeper_spec, lock)
    except OSError as error:
        retention.remove(folder)
        raise cannot_write(error, folder or server_dir) from error
    except Refused:
        retention.remove(folder)
        raise
    finally:
        os.close(lock)  # the keeper has its own descriptor of the same lock
    agent.children.add(pid)
    Starting(request, folder, status, spec)
    agent.loop.later(retention.LATER, lambda: retention.tidy(agent.runs, spec["profile"], spec["server"]))


def environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """The server's environment: the login's, the profile's over it."""
    env = dict(os.environ)
    env.update({str(key): str(value) for key, value in (spec.get("env") or {}).items()})
    return env


def take_lock(server_dir: str, spec: Mapping[str, Any]) -> int | None:
    """The server's flock, which its keeper will hold for life; ``None`` while another holds it.

    The file is never unlinked: a second file would be a second lock. Raises ``Refused``.
    """
    path = os.path.join(server_dir, "lock")
    fd = -1
    try:
        private_dirs(server_dir)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mark = json.dumps({"who": spec.get("who", ""), "at": time.time()}).encode("ascii")
        os.ftruncate(fd, 0)
        os.pwrite(fd, mark, 0)
        return fd
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        raise cannot_write(error, path, "state folder") from error


def held(agent: Agent, server_dir: str, spec: Mapping[str, Any]) -> tuple[str, str]:
    """Who has the lock, and since when; what to do."""
    running = preflight.running(agent.runs, spec)
    if running:
        return preflight.already(spec, running), "Watch that one, or kill it first."
    left = preflight.left(agent.runs, spec)
    if left:
        return preflight.outlived(spec, left)
    holder = load(server_dir, "lock").fields or {}
    since = ", since %s" % preflight.clock(holder["at"]) if holder else ""
    return (
        "%s is being launched or ended right now by %s%s." % (spec["server"], holder.get("who") or "somebody", since),
        "Wait until that is done.",
    )


def new_folder(server_dir: str, env: dict[str, str]) -> tuple[str, str]:
    """A fresh run directory; its name sorts by time."""
    run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + os.urandom(3).hex()
    env["HCS_RUN"] = run
    folder = os.path.join(server_dir, safe_name(run))
    os.mkdir(folder, 0o700)
    return run, folder


def asked(spec: Mapping[str, Any], run: str, cwd: str) -> dict[str, Any]:
    """``run.json``: what was asked, without any secret."""
    hide = masked(spec)
    return {
        "run": run,
        "profile": spec["profile"],
        "server": spec["server"],
        "argv": hide.argv(spec["argv"]),
        "cwd": cwd,
        "env": sorted(spec.get("env") or {}),
        "setup": hide.text(spec.get("setup")),
        "log_link": spec.get("log_link"),
        "port": spec.get("port"),
        "digest": spec.get("digest", ""),
        "who": spec.get("who", ""),
        "started": time.time(),
        "boot_id": boot_id(),
        "sglang": installed(spec, cwd),
    }


def installed(spec: Mapping[str, Any], cwd: str) -> str | None:
    """SGLang's version, as far as the launch's program tells it without being run."""
    if spec.get("setup") and "/" not in spec["argv"][0]:
        return None  # the setup lines decide which program that is
    return sglang_version(preflight.program(spec["argv"][0], cwd, environment(spec)))


def start_keeper(folder: str, spec: Mapping[str, Any], lock: int) -> tuple[int, int]:
    """(descriptor that tells what came of it, keeper's pid). The specification goes through memory, not a file.

    Raises ``OSError``."""
    path = os.path.join(folder, "keeper.pyc")
    status, write = os.pipe()
    opened = [write]
    try:
        opened.append(os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC))
        errors = os.path.join(folder, "keeper.err")
        opened.append(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        opened.append(memory_file("hcs-spec", marshal.dumps(dict(spec))))  # read by the same interpreter
        _, null, err, memory = opened
        argv = [sys.executable, "-ISB", path, folder, str(memory), str(write), str(lock)]
        return status, spawn(argv, (null, null, err, memory, write, lock), cwd="/", before=lambda: prepare(path, write))
    except OSError:
        os.close(status)
        raise
    finally:
        for fd in opened:
            os.close(fd)


def prepare(path: str, status: int) -> None:
    """Before exec: adopt orphans (exec keeps that) and compile the keeper to ``path``. In this process, so that neither
    the agent nor the keeper keeps for life what compiling and ctypes take."""
    become_subreaper()
    code = compile(AGENT_SOURCES["keeper"], "keeper.py", "exec", dont_inherit=True, optimize=2)
    try:
        write_file(path, MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    except OSError as error:
        os.write(status, json.dumps({"unrecorded": error.strerror, "errno": error.errno}).encode("ascii") + b"\n")
        raise


AGENT_SOURCES: Mapping[str, str] = {}


class Starting:
    """Waits for the keeper's word: the program runs, could not be started, or its setup lines failed."""

    def __init__(self, request: Request, folder: str, status: int, spec: Mapping[str, Any]) -> None:
        self._request, self._folder, self._status, self._spec = request, folder, status, spec
        self._text = b""
        self._loop = request.agent.loop
        self._loop.watch(status, self._on_word)
        self._timer = self._loop.later(SETUP_PATIENCE, self._done)

    def _on_word(self, event: int) -> None:
        data = os.read(self._status, 65536)
        self._text += data
        if not data or b"\n" in self._text:
            self._done()

    def _done(self) -> None:
        self._loop.unwatch(self._status)
        os.close(self._status)
        self._timer.cancel()
        told: dict[str, Any] = json.loads(self._text or b"{}")
        error = self._error(told)
        if error is not None:
            self._request.refuse(error)
        else:
            self._request.answer(self._request.agent.runs.record(self._folder))

    def _error(self, told: Mapping[str, Any]) -> Refused | None:
        if "unrecorded" in told:
            retention.remove(self._folder)
            return cannot_write(OSError(told["errno"], told["unrecorded"]), self._folder)
        if "ended" in told:
            told = outcome.not_started(self._folder, self._spec, told["ended"]) or {}
            return Refused(told["message"], told["remedy"], told["failure"]) if told else None
        if "begun" not in told and load(self._folder, "process.json").fields is None:
            why = outcome.tail(os.path.join(self._folder, "keeper.err"))
            return Refused("The keeper of the run did not come up%s" % (": " + why if why else "."))
        return None
