"""Preflight: everything about a launch that can be known without launching. (check, pass|warn|fail, found, advice)"""

from __future__ import annotations

import os
import resource

from . import preflight
from .hiding import exposed, movable, reads_files
from .jobs import Job
from .launch import environment
from .memory import available
from .packages import sglang_version
from .requests import Refused, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

GIB = 1 << 30
LOW_DISK = 5 * GIB
VERSION = (
    "import importlib.util as u, importlib.metadata as m\nprint(m.version('sglang') if u.find_spec('sglang') else '')"
)
NVIDIA = ["nvidia-smi", "--query-gpu=index,name,memory.total,memory.used", "--format=csv,noheader,nounits"]
UNLIMITED = resource.RLIM_INFINITY


def check(request: Request) -> None:
    """Answer with all rows once the two commands (interpreter, nvidia-smi) have ended."""
    Check(request)


class Check:
    """Collects rows; waits for the commands."""

    def __init__(self, request: Request) -> None:
        self._request, self._agent = request, request.agent
        self._spec = request.json()
        self._env = environment(self._spec)
        self._rows: list[list[str]] = []
        self._pending = 1
        self._cwd = self._guard("working directory", lambda: preflight.working_directory(self._spec.get("cwd")))
        if self._cwd:
            self._with_cwd(self._cwd)
        self._plain_checks()
        self._command(NVIDIA, self._on_gpus)
        self._finish_one()

    def _guard(self, name: str, look: Callable[[], str | None], found: str | None = None) -> str | None:
        try:
            value = look()
        except Refused as error:
            self._rows.append([name, "fail", error.message, error.remedy])
            return None
        self._rows.append([name, "pass", found or value or "", ""])
        return value

    def _with_cwd(self, cwd: str) -> None:
        argv = self._spec["argv"]
        sglang = argv[1:3] == ["-m", "sglang.launch_server"]  # else a command of the user's own, with its own rules
        path = None
        if self._spec.get("setup") and "/" not in argv[0]:
            self._rows.append(["interpreter", "pass", "%s, found by the setup lines" % argv[0], ""])
        else:
            path = self._guard("interpreter", lambda: preflight.program(argv[0], cwd, self._env))
            if path and sglang:
                self._command([path, "-c", VERSION], self._on_sglang, timeout=20.0)
        self._keys(path)
        self._guard(
            "log", lambda: preflight.log_link(self._spec.get("log_link"), cwd, make=False) or "in the run directory"
        )
        if sglang:
            self._model(cwd, argv)
        self._disk("disk", cwd)

    def _keys(self, path: str | None) -> None:
        """Whether keys would stand on the command line."""
        keys = exposed(self._spec)
        names = ", ".join(flag for flag, _ in keys)
        if not names:
            return
        version = sglang_version(path) if path else None
        if reads_files(self._spec["argv"], version) and keys == movable(self._spec):
            self._rows.append(["keys", "pass", "%s by a file that only this user can read" % names, ""])
            return
        why = "%s on the command line, which every user of this host can read" % names
        advice = "SGLang 0.5.6 and newer read it from a file, if they are found beside `python` and no --config is set."
        self._rows.append(["keys", "warn", why, advice])

    def _model(self, cwd: str, argv: list[str]) -> None:
        model = flag(argv, "--model-path") or flag(argv, "--model")
        if not model:
            return
        path = os.path.join(cwd, os.path.expanduser(model))
        if os.path.exists(path):
            self._rows.append(["model", "pass", path, ""])
        elif model.startswith(("/", "~", ".")):
            self._rows.append(["model", "fail", "%s does not exist" % path, "Correct model-path, or copy the model."])
        else:
            self._rows.append(["model", "warn", "%s is no path here: it will be downloaded" % model, ""])

    def _plain_checks(self) -> None:
        port = self._spec.get("port")
        if port:
            self._guard("port", lambda: preflight.port_free(port), "%s is free" % port)
        self._guard("running", self._nobody_there, "not yet")
        total, free = available()
        text = "%.1f of %.1f GiB available" % (free / GIB, total / GIB)
        self._rows.append(["memory", "pass", text, ""])
        self._limits()

    def _nobody_there(self) -> None:
        preflight.nobody_runs(self._agent.runs, self._spec)
        preflight.nobody_left(self._agent.runs, self._spec)

    def _limits(self) -> None:
        locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        text = "unlimited" if locked == UNLIMITED else "%.1f GiB" % (locked / GIB)
        self._rows.append(["locked memory", "pass", text, ""])  # CUDA pins memory outside this limit
        text = "%s, at most %s" % files
        if files[1] != UNLIMITED and files[1] < 4096:
            self._rows.append(["open files", "warn", text, "Raise `ulimit -n` of this user to 65535."])
        else:
            self._rows.append(["open files", "pass", text, ""])

    def _disk(self, name: str, path: str) -> None:
        try:
            stat = os.statvfs(path)
        except OSError:
            return
        left = stat.f_bavail * stat.f_frsize
        text = "%.1f GiB left on %s" % (left / GIB, path)
        low = left < LOW_DISK
        self._rows.append([name, "warn" if low else "pass", text, "Free some space." if low else ""])

    def _command(self, argv: list[str], done: Callable[[int | None, str], None], timeout: float = 10.0) -> None:
        self._pending += 1

        def finished(status: int | None, output: bytes) -> None:
            done(status, output.decode("utf-8", "replace").strip())
            self._finish_one()

        Job(self._agent.loop, self._agent.children, argv, finished, timeout=timeout, env=self._env, cwd=self._cwd)

    def _on_sglang(self, status: int | None, output: str) -> None:
        last = output.splitlines()[-1] if output else ""
        remedy = "Point `python` at the interpreter that has sglang, or install it there."
        if status is None:
            self._rows.append(["sglang", "warn", "the interpreter gave no answer in 20 s", "Is its file system slow?"])
        elif status != 0 or not last:
            found = last if status != 0 else "not installed for this interpreter"
            self._rows.append(["sglang", "fail", found, remedy])
        else:
            self._rows.append(["sglang", "pass", last, ""])

    def _on_gpus(self, status: int | None, output: str) -> None:
        visible = self._env.get("CUDA_VISIBLE_DEVICES", "")
        if status != 0:
            why = "nvidia-smi gave no answer" if status is None else "no nvidia-smi on this host"
            self._rows.append(["GPUs", "warn", why, "" if status == 127 else output[-200:]])
            return
        rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines()]
        known = {row[0] for row in rows}
        missing = [gpu for gpu in visible.split(",") if gpu.strip().isdigit() and gpu.strip() not in known]
        text = "; ".join("%s: %s, %s of %s MiB used" % (r[0], r[1], r[3], r[2]) for r in rows if len(r) > 3)
        if missing:
            self._rows.append(["GPUs", "fail", text, "There is no GPU %s here." % ", ".join(missing)])
        else:
            self._rows.append(["GPUs", "pass", text, ""])

    def _finish_one(self) -> None:
        self._pending -= 1
        if self._pending == 0:
            self._request.answer(self._rows)


def flag(argv: list[str], name: str) -> str | None:
    """The value of ``--name VALUE`` or ``--name=VALUE``."""
    for at, word in enumerate(argv):
        if word == name and at + 1 < len(argv):
            return argv[at + 1]
        if word.startswith(name + "="):
            return word[len(name) + 1 :]
    return None
