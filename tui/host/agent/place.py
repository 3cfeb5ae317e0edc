"""Where a process lives, by its cgroup, namespaces and ancestors: a container, a Slurm job, a systemd unit."""

from __future__ import annotations

import os
import re

from .files import read_text
from .procs import look

_ID = r"([0-9a-f]{64})"
_CONTAINERS = (
    ("kubernetes", re.compile(r"/kubepods[^\n]*[/-]" + _ID)),
    ("podman", re.compile(r"/libpod-" + _ID)),
    ("docker", re.compile(r"/docker[/-]" + _ID)),
    ("containerd", re.compile(r"[/:-]" + _ID + r"(?:\.scope)?(?:/|$)", re.MULTILINE)),
    ("lxc", re.compile(r"/lxc(?:\.payload)?[./]([\w.-]{1,64})")),
    ("nspawn", re.compile(r"/machine-([\w.\\-]{1,64})\.scope")),
)
APPTAINER_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
SLURM_VARIABLE = "SLURM_JOB_ID"
_APPTAINER_PARENTS = ("Apptainer", "Singularity", "starter", "appinit", "sinit")
_APPTAINER_MOUNT = re.compile(r"/(?:apptainer|singularity)/mnt/session")
_JOB = re.compile(r"slurm[^\n]*/job_(\d+)")
_UNIT = re.compile(r"/([\w@.\\:-]+)\.service(?:/|$)", re.MULTILINE)
_NO_UNITS = re.compile(r"(?:user@\d+|sshd?(?:@.*)?|cron|crond|atd|slurmd|docker|containerd|getty@.*|dbus|systemd-.*)")
_GENERATIONS = 32


def container(pid: int, environment: dict[str, str] | None = None) -> str | None:
    """``docker 0123456789ab``: the container that ``pid`` lives in and we do not; else ``None``."""
    return contained(
        _text(pid, "cgroup"), _text("self", "cgroup"), _namespaces(pid), _namespaces("self")
    ) or _apptainer(pid, environment or {})


def contained(theirs: str, ours: str, depth: int, our_depth: int) -> str | None:
    """By the two cgroup texts, and by how many pid namespaces the processes are in."""
    for kind, pattern in _CONTAINERS:
        found = pattern.search(theirs)
        if found:
            return None if found[1] in ours else "%s %s" % (kind, found[1][:12])
    return "a pid namespace of its own" if depth > our_depth else None


def _apptainer(pid: int, environment: dict[str, str]) -> str | None:
    for name in APPTAINER_VARIABLES:
        if environment.get(name):
            return None if os.environ.get(name) else "apptainer %s" % os.path.basename(environment[name])
    at: int | None = pid
    for _ in range(_GENERATIONS):
        proc = look(at) if at else None
        if proc is None or proc.pid <= 1:
            break
        if proc.name.startswith(_APPTAINER_PARENTS) and proc.pid != pid:
            return "apptainer"
        at = proc.parent
    if _APPTAINER_MOUNT.search(_text(pid, "mountinfo")) and not _APPTAINER_MOUNT.search(_text("self", "mountinfo")):
        return "apptainer"
    return None


def ending(where: str) -> str:
    """How people end such a container: `` (docker stop 0123456789ab)``."""
    kind, _, name = where.partition(" ")
    command = {"docker": "docker stop %s", "podman": "podman stop %s", "lxc": "lxc-stop %s"}.get(kind)
    return " (%s)" % (command % name) if command else ""


def job(pid: int, environment: dict[str, str]) -> str | None:
    """``slurm job 77`` or ``systemd unit sglang.service``: who started the process, and may start it again."""
    return keeper_of(_text(pid, "cgroup"), environment)


def keeper_of(cgroup: str, environment: dict[str, str]) -> str | None:
    found = _JOB.search(cgroup)
    number = found[1] if found else environment.get(SLURM_VARIABLE)
    if number:
        return "slurm job %s" % number
    units = [unit for unit in _UNIT.findall(cgroup) if not _NO_UNITS.fullmatch(unit)]
    return "systemd unit %s.service" % units[-1] if units else None


def own_network(pid: int) -> bool:
    """Whether its ports are not this host's: another network namespace than ours."""
    try:
        return os.readlink("/proc/%d/ns/net" % pid) != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _namespaces(pid: int | str) -> int:
    found = re.search(r"^NSpid:(.*)$", _text(pid, "status"), re.MULTILINE)
    return len(found[1].split()) if found else 1


def _text(pid: int | str, name: str) -> str:
    return read_text("/proc/%s/%s" % (pid, name)) or ""
