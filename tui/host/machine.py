"""A host as a whole: memory, disks, GPUs, as its agent saw them. Sizes in bytes; ``None`` for what nobody tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system, by what lies on it: ``runs`` (logs and records of runs) or ``model``."""

    what: str
    path: str
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds memory of a GPU. ``run`` is the watched run that it belongs to; others are foreign. A
    process that cannot be seen from the host (another container's) has no owner and no name."""

    pid: int
    used: int | None = None
    run: str | None = None
    owner: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. ``busy`` is a ratio 0 to 1; power in watts."""

    index: int
    name: str
    uuid: str = ""
    used: int | None = None
    total: int | None = None
    busy: float | None = None
    power: float | None = None
    power_limit: float | None = None
    celsius: float | None = None
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """``limit`` and ``left`` are of the tightest memory cgroup around the agent. ``trouble``: why the GPUs could not be
    asked; it is empty on a host without the driver's tool."""

    total: int
    available: int
    limit: int | None = None
    left: int | None = None
    disks: tuple[Disk, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    trouble: str = ""

    @property
    def usable(self) -> int:
        """What a server that is started now can have: the machine's, or the cgroup's where that is less."""
        return self.available if self.left is None else min(self.available, self.left)

    @property
    def capacity(self) -> int:
        """The memory that there is for servers."""
        return self.total if self.limit is None else min(self.total, self.limit)


def machine_of(told: Mapping[str, Any]) -> Machine:
    """What the agent answered."""
    gpus = tuple(
        Gpu(**{**_known(Gpu, gpu), "holders": tuple(Holder(**_known(Holder, one)) for one in gpu["holders"])})
        for gpu in told["gpus"]
    )
    disks = tuple(Disk(**_known(Disk, disk)) for disk in told["disks"])
    return Machine(**{**_known(Machine, told), "disks": disks, "gpus": gpus})


def _known(kind: type, told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that this release knows."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in told.items() if name in names}
