"""What was written → a profile: defaults merged, replicas counted out, ``{gpu}`` and its like filled in, checks
across servers. Mistakes are collected, not raised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path as FilePath
from posixpath import join, normpath
from typing import Any

from tui.profile.flags import flag_error, flag_warning
from tui.profile.model import SENSITIVE, ArgValue, Host, Profile, Secret, Server, flag_name
from tui.profile.problem import Problem, nearest
from tui.profile.schema import HostSpec, ProfileSpec, ServerSpec
from tui.profile.source import Path, Source
from tui.profile.words import NAME, VARIABLE

FIRST_PORT = 30000  # SGLang's default
TOKEN = re.compile(r"(?<![${])\{([a-z_]+)\}(?!\})")  # neither ${name} of a shell nor {{name}} of a template
TOKENS = ("gpu", "name", "port", "host")
MAX_SERVERS = 256
NO_HOST = Host(name="", ssh="")  # stands in while the rest of a server is checked; never in a profile
PLAIN_KEYS = ("python", "cwd", "log", "setup", "ready_by", "ready_timeout", "stall_after", "stop_grace", "restart")


@dataclass(slots=True)
class Draft:
    """One server on its way from the file to a ``Server``. ``key`` is its name in the file."""

    key: str
    values: dict[str, Any]
    gpus: tuple[int, ...]
    index: int  # among its replicas


@dataclass(slots=True)
class Expansion:
    """The work on one file. ``broken`` are paths that were already reported and removed."""

    source: Source
    spec: ProfileSpec
    broken: frozenset[Path]
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def run(self, default_name: str, path: FilePath | None) -> Profile | None:
        """The profile, or ``None`` where ``problems`` say why not."""
        hosts = {name: self._host(name, spec) for name, spec in self.spec.hosts.items()}
        drafts = [draft for key, spec in self.spec.servers.items() for draft in self._drafts(key, spec)]
        if not self.spec.servers and not self._is_broken("servers"):
            self._problem(("servers",), "no servers: name at least one")
        if len(drafts) > MAX_SERVERS:
            self._problem(("servers",), f"{len(drafts)} servers; at most {MAX_SERVERS}")
            drafts = []
        made = [(draft, self._server(draft, hosts)) for draft in drafts]
        servers = [(draft, server) for draft, server in made if server is not None]
        self._across(servers)
        if self.problems or self.broken:
            return None
        used = {server.host.name: server.host for _, server in servers}
        return Profile(
            name=self.spec.name or default_name,
            path=path,
            hosts=tuple((hosts | used).values()),
            servers=tuple(server for _, server in servers),
            warnings=tuple(dict.fromkeys(self.warnings)),
        )

    def _problem(self, path: Path, message: str) -> None:
        self.problems.append(self.source.problem(path, message))

    def _warn(self, path: Path, message: str) -> None:
        self.warnings.append(self.source.problem(path, message))

    def _is_broken(self, *path: str) -> bool:
        """Whether something at, under or around ``path`` was already reported."""
        return any(bad[: len(path)] == path or path[: len(bad)] == bad for bad in self.broken)

    def _unsure(self, key: str, name: str) -> bool:
        """Whether the server's own ``name`` or the default it would take was already reported."""
        return self._is_broken("servers", key, name) or self._is_broken("defaults", name)

    def _where(self, key: str, *rest: str) -> Path:
        """Where a server's value stands: with it, with the defaults, or nowhere (then the server itself)."""
        own: Path = ("servers", key, *rest)
        default: Path = ("defaults", *rest)
        return own if own in self.source.lines else default if default in self.source.lines else ("servers", key)

    def _host(self, name: str, spec: HostSpec) -> Host:
        if why := NAME.error(name):
            self._problem(("hosts", name), why)
        return Host(name=name, **{"ssh": name, **spec.model_dump(exclude_none=True)})

    def _drafts(self, key: str, spec: ServerSpec) -> Iterable[Draft]:
        """One draft, or one per replica."""
        values = self._merged(key, spec)
        written = values.get("gpus") or []
        if "{gpu}" not in key:
            if any(isinstance(entry, list) for entry in written):
                self._problem(self._where(key, "gpus"), "a list of lists is for replicas: put {gpu} into the name")
            flat = [one for entry in written for one in (entry if isinstance(entry, list) else [entry])]
            return [Draft(key, values, tuple(flat), 0)]
        if not written and not self._unsure(key, "gpus"):
            self._problem(self._where(key, "gpus"), "a name with {gpu} needs a list of gpus")
        entries = [tuple(entry) if isinstance(entry, list) else (entry,) for entry in written]
        return [Draft(key, values, entry, index) for index, entry in enumerate(entries)]

    def _merged(self, key: str, spec: ServerSpec) -> dict[str, Any]:
        """The server's values over the defaults'; ``None`` takes a default back."""
        merged: dict[str, Any] = {}
        for part in (self.spec.defaults, spec):
            merged |= {name: getattr(part, name) for name in part.model_fields_set}
        merged["env"] = self._env(key, spec)
        merged["args"] = self._args(key, spec)
        if merged.get("command") is not None:
            if spec.args:
                self._problem(("servers", key, "args"), "args do nothing beside a command")
            merged["args"] = {}
        return {name: value for name, value in merged.items() if value is not None}

    def _env(self, key: str, spec: ServerSpec) -> dict[str, str | Secret]:
        env: dict[str, str | Secret | None] = {}
        places: dict[str, Path] = {}
        for base, part in ((("defaults", "env"), self.spec.defaults), (("servers", key, "env"), spec)):
            for name, value in part.env.items():
                places[name] = (*base, name)
                kept = value is None or isinstance(value, Secret)
                env[name] = value if kept else self.source.texts.get((*base, name), str(value))
        for name, value in env.items():
            if why := VARIABLE.error(name):
                self._problem(places[name], why)
            elif isinstance(value, str) and SENSITIVE.search(name):
                self._warn(places[name], "a secret in plain text; write !secret NAME and export NAME")
        return {name: value for name, value in env.items() if value is not None}

    def _args(self, key: str, spec: ServerSpec) -> dict[str, ArgValue]:
        args: dict[str, ArgValue | None] = {}
        for base, part in ((("defaults", "args"), self.spec.defaults), (("servers", key, "args"), spec)):
            seen: dict[str, str] = {}
            for written, value in part.args.items():
                flag = flag_name(written)
                place: Path = (*base, written)
                if flag in seen:
                    self._problem(place, f"the same flag as {seen[flag]!r}")
                seen[flag] = written
                args[flag] = value
                if value is not None:
                    self._check_flag(place, flag, value)
        return {flag: value for flag, value in args.items() if value is not None}

    def _check_flag(self, place: Path, flag: str, value: ArgValue) -> None:
        if error := flag_error(flag, value):
            self._problem(place, error)
        elif warning := flag_warning(flag, value):
            self._warn(place, warning)

    def _server(self, draft: Draft, hosts: Mapping[str, Host]) -> Server | None:
        host = self._host_of(draft, hosts)
        port = self._port(draft)
        words = {"gpu": "-".join(map(str, draft.gpus)), "port": str(port), "host": host.name if host else ""}
        name = draft.key.replace("{gpu}", words["gpu"])
        if why := NAME.error(name):
            self._problem(("servers", draft.key), _misnamed(draft.key, name, why))
        fill = self._filler(draft, {**words, "name": name})
        values = draft.values
        server = Server(
            name=name,
            host=host or NO_HOST,
            port=port,
            gpus=draft.gpus,
            env={env: fill(value, "env", env) for env, value in values["env"].items()},
            args={flag: fill(value, "args", flag) for flag, value in values["args"].items()},
            **{plain: fill(values[plain], plain) for plain in PLAIN_KEYS if plain in values},
            **({"command": fill(tuple(values["command"]), "command")} if "command" in values else {}),
        )
        self._check_server(draft, server)
        return server if host else None

    def _host_of(self, draft: Draft, hosts: Mapping[str, Host]) -> Host | None:
        """The server's host: the one named, the only one there is, or ``local``, which needs no declaration."""
        name: str | None = draft.values.get("host")
        if name is None and len(hosts) == 1:
            return next(iter(hosts.values()))
        if name is not None and name in hosts:
            return hosts[name]
        if name == "local":
            return Host(name="local", ssh="local")
        if not self._unsure(draft.key, "host") and not self._is_broken("hosts", str(name)):
            hint = nearest(str(name or ""), [*hosts, "local"])
            message = f"unknown host {name!r}; {hint}" if name else f"no host: say on which it runs; {hint}"
            self._problem(self._where(draft.key, "host"), message)
        return None

    def _port(self, draft: Draft) -> int:
        written = draft.values.get("port", f"{FIRST_PORT}+")
        port = int(written[:-1]) + draft.index if isinstance(written, str) else int(written)
        if port > 65535:
            self._problem(self._where(draft.key, "port"), f"counts up to {port}; a port is 1 to 65535")
        return port

    def _filler(self, draft: Draft, words: Mapping[str, str]) -> Callable[..., Any]:
        """A function that fills ``{gpu}``, ``{name}``, ``{port}``, ``{host}`` into a value standing at ``rest``."""

        def fill(value: Any, *rest: str) -> Any:
            if isinstance(value, tuple):
                return tuple(fill(one, *rest) for one in value)
            if not isinstance(value, str):
                return value
            where = self._where(draft.key, *rest)
            for token in TOKEN.findall(value):
                if token == "gpu" and not draft.gpus and not self._unsure(draft.key, "gpus"):
                    self._problem(where, "uses {gpu}, but the server has no gpus")
                elif token not in TOKENS and (close := get_close_matches(token, TOKENS, n=1, cutoff=0.7)):
                    self._warn(where, f"{{{token}}} is left as it is; did you mean {{{close[0]}}}?")
            return TOKEN.sub(lambda found: words.get(found[1], found[0]), value)

        return fill

    def _check_server(self, draft: Draft, server: Server) -> None:
        names_model = server.command or server.model or "config" in server.args
        if not names_model and not self._misplaced_model(draft.key):
            self._problem(("servers", draft.key), "no model: its args, or the defaults', need model-path")
        if server.gpus and "CUDA_VISIBLE_DEVICES" in server.env:
            self._problem(self._where(draft.key, "env", "CUDA_VISIBLE_DEVICES"), "set by gpus; leave one of them out")

    def _misplaced_model(self, key: str) -> bool:
        """Whether a mistake that was reported may be why the server has no model: it stands beside its args, or they,
        or the command, are wrong or misspelt."""
        if self._unsure(key, "args") or self._unsure(key, "command"):
            return True
        unknown = [str(bad[-1]) for bad in self.broken if bad[:-1] in (("servers", key), ("defaults",))]
        return any("model" in name or get_close_matches(name, ("args", "command"), n=1, cutoff=0.6) for name in unknown)

    def _across(self, servers: list[tuple[Draft, Server]]) -> None:
        """What two servers of one machine must not share."""
        self._unique(servers, "name", lambda server: ("name", server.name), "has the same name")
        self._unique(servers, "port", lambda server: (server.host.ssh, server.port), "has the same port")
        self._unique(servers, "log", _log_place, "has the same log")
        holders: dict[tuple[str, int], Server] = {}
        for draft, server in servers:
            for gpu in server.gpus:
                other = holders.setdefault((server.host.ssh, gpu), server)
                if other is not server:
                    where = self._where(draft.key, "gpus")
                    self._warn(where, f"{server.name} shares GPU {gpu} of {server.host.name} with {other.name}")

    def _unique(
        self,
        servers: list[tuple[Draft, Server]],
        name: str,
        place: Callable[[Server], object],
        message: str,
    ) -> None:
        first: dict[object, Server] = {}
        for draft, server in servers:
            key = place(server)
            if key is None or self._unsure(draft.key, name):
                continue
            other = first.setdefault(key, server)
            if other is not server:
                value = getattr(server, name)
                hint = "; write 30000+ to count up" if name == "port" and draft.index else ""
                hint = "; put {gpu} or {name} into it" if name == "log" else hint
                self._problem(self._where(draft.key, name), f"{value}: {other.name} {message} as {server.name}{hint}")


def _misnamed(key: str, name: str, why: str) -> str:
    """What is wrong with a server's name, once it is known for each of its replicas."""
    if why.startswith("holds '{'"):
        return f"{why}, and {{gpu}}, the only token that is filled in here"
    return f"with {{gpu}} filled in, it {why}" if name != key else why


def _log_place(server: Server) -> object:
    return None if server.log is None else (server.host.ssh, normpath(join(server.cwd or "", server.log)))
