"""A profile, as frozen pydantic models. See the README's section on profiles for the format.

Everything is filled in here: replicas are separate servers, defaults are merged, ``{gpu}`` and its like are replaced.
Durations are seconds.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tui.profile.problem import Problem, UnknownServer, nearest

MASK = "****"
SENSITIVE = re.compile(r"(?i)(api[-_]?key|secret|passw|credential|(^|[-_])(token|key)$)")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is read from this side's environment variable ``name`` at launch, and never shown."""

    name: str


ArgScalar = bool | int | float | str | Secret
ArgValue = ArgScalar | tuple[ArgScalar, ...]
Resolver = Callable[[str], str]
"""The name of a secret → its value; raises ``LookupError`` when it is not set."""


class Frozen(BaseModel):
    """The settings that all models of a profile share."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Host(Frozen):
    """A machine reached by SSH, or this one. ``ssh`` is an alias of the SSH config, user@host:port, or ``local``."""

    name: str
    ssh: str
    identity: str | None = None
    known_hosts: str | None = None
    jump: str | None = None
    python: str = "python3"  # for the agent
    state_dir: str | None = None
    stagger: float = 0.0  # seconds between two launches on this host

    @property
    def is_local(self) -> bool:
        return self.ssh == "local"


class Server(Frozen):
    """One SGLang service, as it will be launched."""

    name: str
    host: Host
    port: int
    python: str = "python3"
    cwd: str | None = None
    env: Mapping[str, str | Secret] = Field(default_factory=dict)
    log: str | None = None
    setup: str | None = None
    ready_by: str = "auto"
    ready_timeout: float = 900.0
    stall_after: float = 300.0
    stop_grace: float = 30.0
    restart: str = "never"
    args: Mapping[str, ArgValue] = Field(default_factory=dict)  # flag without dashes → value
    command: tuple[str, ...] | None = None  # instead of python and args
    gpus: tuple[int, ...] = ()

    @property
    def model(self) -> str | None:
        """The model's path or name, from the flags."""
        value = self.flags.get("model-path", self.flags.get("model"))
        return value if isinstance(value, str) else None

    @property
    def flags(self) -> Mapping[str, ArgValue]:
        """The flags that SGLang gets: ``args``, or those that a ``command`` of its own holds."""
        return self.args if self.command is None else _flags_of(self.command)

    @property
    def url(self) -> str:
        """Where the server answers, as its own host sees it."""
        host = self.args.get("host")
        if not isinstance(host, str) or host in ("0.0.0.0", "::", ""):
            host = "127.0.0.1"
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def argv(self, resolve: Resolver | None = None) -> tuple[str, ...]:
        """The command to run. Without ``resolve``, secrets appear as ``****``; with it, ``LookupError`` is raised
        for a secret that is not set."""
        if self.command is not None:
            return self.command
        show = resolve or (lambda _name: MASK)
        flags = [word for flag, value in self.args.items() for word in _flag(flag, value, show)]
        return (self.python, "-m", "sglang.launch_server", *flags, "--port", str(self.port))

    def environment(self, resolve: Resolver | None = None) -> dict[str, str]:
        """The variables to add to the host's own environment; ``resolve`` as in ``argv``."""
        show = resolve or (lambda _name: MASK)
        env = {name: show(value.name) if isinstance(value, Secret) else value for name, value in self.env.items()}
        if self.gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, self.gpus))
        return env

    def secret_names(self) -> tuple[str, ...]:
        """The names of all secrets that ``argv`` and ``environment`` use, sorted."""
        values: list[ArgScalar] = list(self.env.values())
        for value in self.args.values():
            values.extend(value if isinstance(value, tuple) else (value,))
        return tuple(sorted({value.name for value in values if isinstance(value, Secret)}))

    def command_line(self, masked: bool = True) -> str:
        """The launch as one line for a POSIX shell: folder, variables, command.

        A secret stands there as ``"$NAME"``. ``masked`` also hides keys and tokens that the profile has in plain text.
        """
        words = [f"{name}={_word(name, value, masked)}" for name, value in self._shown_env().items()]
        line = " ".join([*words, *self._shown_argv(masked)])
        return f"cd {shlex.quote(self.cwd)} && {line}" if self.cwd else line

    def _shown_env(self) -> dict[str, str | Secret]:
        gpus = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))} if self.gpus else {}
        return {**self.env, **gpus}

    def _shown_argv(self, masked: bool) -> list[str]:
        if self.command is not None:
            return [shlex.quote(word) for word in self.command]
        shown = [shlex.quote(self.python), "-m", "sglang.launch_server"]
        for flag, value in self.args.items():
            if value is True:
                shown.append(f"--{flag}")
            elif value is not False:
                values = value if isinstance(value, tuple) else (value,)
                shown += [f"--{flag}", *(_word(flag, one, masked) for one in values)]
        return [*shown, "--port", str(self.port)]

    def digest(self) -> str:
        """16 hex digits that change when anything that reaches the process changes (no secret's value does)."""
        parts = (self.argv(lambda name: f"!secret {name}"), self.environment(lambda name: f"!secret {name}"))
        text = json.dumps([*parts, self.cwd, self.setup, self.host.ssh], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def with_args(self, overrides: Mapping[str, object]) -> Server:
        """The same server with some flags changed: a value of ``ArgValue`` sets a flag, ``None`` removes it.

        In a ``command`` of its own the flag's words are replaced, or added at its end. Raises ``ValueError`` for a
        value that is no flag's.
        """
        args = dict(self.args)
        command = self.command
        for name, value in overrides.items():
            flag = flag_name(name)
            if flag == "port":
                raise ValueError("the port is the server's own key, not a flag to change")
            if command is not None:
                added = [] if value is None else _flag(flag, arg_value(value), lambda _name: MASK)
                command = (*_without_flag(command, flag), *added)
            elif value is None:
                args.pop(flag, None)
            else:
                args[flag] = arg_value(value)
        return self.model_copy(update={"args": args, "command": command})


class Profile(Frozen):
    """A fleet: hosts and servers in the file's order. ``warnings`` are worth saying and hinder nothing."""

    name: str
    path: Path | None
    hosts: tuple[Host, ...]
    servers: tuple[Server, ...]
    warnings: tuple[Problem, ...] = ()

    def select(self, names: Iterable[str] = ()) -> tuple[Server, ...]:
        """The servers called ``names`` in the profile's order; all of them for no name.

        Raises ``UnknownServer`` with the nearest valid name.
        """
        wanted = list(names)
        valid = [server.name for server in self.servers]
        for name in wanted:
            if name not in valid:
                raise UnknownServer(f"{self.name} has no server {name!r}; {nearest(name, valid)}")
        return tuple(server for server in self.servers if not wanted or server.name in wanted)

    def server(self, name: str) -> Server:
        """The one server called ``name``; raises ``UnknownServer``."""
        return self.select([name])[0]


def flag_name(text: str) -> str:
    """A flag without leading dashes, words parted by dashes: ``--model_path`` → ``model-path``."""
    return text.strip().removeprefix("--").replace("_", "-")


def arg_value(value: object) -> ArgValue:
    """``value`` if a flag can have it (lists become tuples); else ``ValueError`` in the user's words."""
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError("an empty list; null removes a flag")
        return tuple(_arg_scalar(one) for one in value)
    return _arg_scalar(value)


def _arg_scalar(value: object) -> ArgScalar:
    if isinstance(value, bool | int | float | str | Secret):
        return value
    if isinstance(value, Mapping):
        raise ValueError("a mapping is no value of a flag; write JSON as a quoted string")
    raise ValueError(f"{type(value).__name__} is no value of a flag")


def _flags_of(command: tuple[str, ...]) -> dict[str, ArgValue]:
    """The ``--flag value`` words of a command line; a flag with no value is ``True``."""
    flags: dict[str, ArgValue] = {}
    last = ""
    for word in command:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            last = flag_name(name)
            flags[last] = value if equals else True
        elif last:
            flags[last], last = word, ""
    return flags


def _without_flag(command: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """``command`` without ``--flag`` and its values, which last until the next word that begins with a dash."""
    kept: list[str] = []
    inside = False
    for word in command:
        name, equals, _ = word.partition("=")
        if word.startswith("--"):
            inside = flag_name(name) == flag and not equals
            if flag_name(name) == flag:
                continue
        elif inside and not word.startswith("-"):
            continue
        kept.append(word)
    return tuple(kept)


def _flag(flag: str, value: ArgValue, show: Resolver) -> list[str]:
    """One flag as words of a command line."""
    if value is True:
        return [f"--{flag}"]
    if value is False:
        return []
    values = value if isinstance(value, tuple) else (value,)
    words = [show(one.name) if isinstance(one, Secret) else str(one) for one in values]
    if len(words) == 1 and words[0].startswith("-"):
        return [f"--{flag}={words[0]}"]  # argparse would take it for a flag
    return [f"--{flag}", *words]


def _word(name: str, value: ArgScalar, masked: bool) -> str:
    if isinstance(value, Secret):
        return f'"${value.name}"'
    return MASK if masked and SENSITIVE.search(name) else shlex.quote(str(value))
