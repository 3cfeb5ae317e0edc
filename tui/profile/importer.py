"""A launch line or script → a profile: what a person typed, as a file that launches the same."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar

from tui.profile.model import SENSITIVE, Secret, flag_name
from tui.profile.shell import Remote, SimpleCommand, commands
from tui.profile.words import NAME

Value = bool | int | float | str | Secret
_FLAG = re.compile(r"--[A-Za-z]|-[A-Za-z]")
_GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class NothingToImport(ValueError):
    """A text that launches no SGLang server."""


@dataclass(slots=True)
class Imported:
    """One launch that was found."""

    args: dict[str, Value | list[Value]]
    python: str
    port: int | None = None
    env: dict[str, str | Secret] = field(default_factory=dict)
    gpus: list[int] = field(default_factory=list)
    cwd: str | None = None
    log: str | None = None
    setup: str | None = None
    remote: Remote | None = None


def import_script(text: str) -> tuple[str, list[str]]:
    """A command line or a shell script → a profile's text, and notes for the person.

    Keys and tokens in plain text do not get into the profile: ``!secret NAME`` takes their place.
    Raises ``NothingToImport``.
    """
    try:
        found = [imported for command in commands(text) if (imported := _imported(command))]
    except NothingToImport:
        raise
    except ValueError as error:
        raise NothingToImport(f"cannot be read as a shell command: {str(error).lower()}") from None
    if not found:
        raise NothingToImport(
            "launches no SGLang server: neither `-m sglang.launch_server` nor `sglang serve` is in it"
        )
    return _profile(found), list(dict.fromkeys(note for one in found for note in _notes(one)))


def profile_text(found: Iterable[SimpleCommand], name: str = "imported") -> tuple[str, list[str]]:
    """Launches of SGLang as a profile's text, and notes for the person; what launches none is left out."""
    launches = [imported for command in found if (imported := _imported(command))]
    return _profile(launches, name), list(dict.fromkeys(note for one in launches for note in _notes(one)))


def _imported(command: SimpleCommand) -> Imported | None:
    start = _launch(command.words)
    if start is None:
        return None
    python, rest = start
    args = _flags(rest)
    port = args.pop("port", None)
    if port is True:
        raise NothingToImport("--port has no number behind it")
    env = {name: _env_secret(name, value) for name, value in command.env.items()}
    gpus: list[int] = []
    for name in _GPU_VARIABLES:
        value = command.env.get(name, "")
        if not gpus and re.fullmatch(r"\d+(,\d+)*", value):
            gpus = [int(number) for number in value.split(",")]
            del env[name]
    setup = "\n".join(command.setup) or None
    remote = command.remote
    return Imported(
        args, python, port if isinstance(port, int) else None, env, gpus, command.cwd, command.output, setup, remote
    )


def _launch(words: Iterable[str]) -> tuple[str, list[str]] | None:
    """The interpreter and the flags, where the words are a launch of SGLang (behind wrappers such as ``numactl``)."""
    words = list(words)
    for index, word in enumerate(words):
        if word == "-m" and words[index + 1 : index + 2] == ["sglang.launch_server"]:
            before = [one for one in words[:index] if not one.startswith("-")]
            return (before[-1] if before else "python3"), words[index + 2 :]
        if word.endswith("sglang/launch_server.py"):
            return (words[index - 1] if index else "python3"), words[index + 1 :]
        if PurePosixPath(word).name == "sglang" and words[index + 1 : index + 2] == ["serve"]:
            folder = PurePosixPath(word).parent
            return ("python3" if str(folder) == "." else str(folder / "python")), words[index + 2 :]
    return None


def _flags(words: list[str]) -> dict[str, Value | list[Value]]:
    """Flags → values: none is ``True``, several are a list. A word before the first flag is the model."""
    given: dict[str, list[str]] = {}
    flag = "model-path"
    for word in words:
        if _FLAG.match(word):
            name, equals, value = word.partition("=")
            flag = flag_name(name.removeprefix("-") if not name.startswith("--") else name)
            given[flag] = [value] if equals else []
        else:
            given.setdefault(flag, []).append(word)
    args: dict[str, Value | list[Value]] = {}
    for flag, texts in given.items():
        values = [_value(flag, text) for text in texts]
        args[flag] = True if not values else values[0] if len(values) == 1 else values
    return args


def _value(flag: str, text: str) -> Value:
    if SENSITIVE.search(flag):
        return Secret(_variable(text) or flag.upper().replace("-", "_"))
    if re.fullmatch(r"0|-?[1-9]\d*", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    return text


def _env_secret(name: str, value: str) -> str | Secret:
    """``X=$X``, a key or a token becomes ``!secret``."""
    variable = _variable(value)
    return Secret(variable or name) if variable or SENSITIVE.search(name) else value


def _variable(text: str) -> str | None:
    found = re.fullmatch(r"\$(\w+)|\$\{(\w+)(?::[-?][^}]*)?\}", text)
    return (found[1] or found[2]) if found else None


def _notes(one: Imported) -> list[str]:
    texts: list[object] = [one.python, one.cwd, one.log, *one.env.values()]
    for value in one.args.values():
        texts += value if isinstance(value, list) else [value]
    notes = [
        f"{text}: the script does not say what ${found} is; put the value in"
        for text in texts
        if isinstance(text, str)
        for found in re.findall(r"\$\{?(\w+)", text)
    ]
    secrets = sorted({text.name for text in texts if isinstance(text, Secret)})
    return notes + [f"!secret {name}: export {name} where you launch from" for name in secrets]


def _profile(found: list[Imported], name: str = "imported") -> str:
    remotes = list(dict.fromkeys(one.remote for one in found if one.remote))
    names = {remote: _host_name(remote, index) for index, remote in enumerate(remotes)}
    document = CommentedMap({"name": name})
    if remotes:
        document["hosts"] = CommentedMap({names[remote]: _host(remote) for remote in remotes})
    servers = CommentedMap()
    for one in found:
        name = base = "gpu" + "-".join(map(str, one.gpus)) if one.gpus else "server"
        number = 2
        while name in servers:
            name, number = f"{base}_{number}", number + 1
        servers[name] = _server(one, names[one.remote] if one.remote else "local")
    document["servers"] = servers
    yaml = YAML()
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _host_name(remote: Remote, index: int) -> str:
    bare = remote.destination.rpartition("@")[2].partition(":")[0]
    return bare if NAME.matches(bare) and bare != "local" else f"host{index + 1}"


def _host(remote: Remote) -> CommentedMap:
    host = CommentedMap({"ssh": remote.destination})
    for key, value in (("identity", remote.identity), ("jump", remote.jump)):
        if value:
            host[key] = value
    return host


def _server(one: Imported, host: str) -> CommentedMap:
    entries: dict[str, object] = {
        "host": host,
        "python": one.python,
        "cwd": one.cwd,
        "setup": one.setup,
        "env": _map(one.env),
        "log": one.log if one.log != "/dev/null" else None,
        "gpus": _flow(one.gpus),
        "port": one.port or 30000,
        "args": _map(one.args),
    }
    return CommentedMap({key: value for key, value in entries.items() if value})


def _map(values: dict[str, Value | list[Value]] | dict[str, str | Secret]) -> CommentedMap:
    return CommentedMap(
        {key: _flow(value) if isinstance(value, list) else _node(value) for key, value in values.items()}
    )


def _flow(values: list[Value] | list[int]) -> CommentedSeq:
    sequence = CommentedSeq(_node(value) for value in values)
    sequence.fa.set_flow_style()
    return sequence


def _node(value: Value) -> object:
    return TaggedScalar(value.name, style=None, tag="!secret") if isinstance(value, Secret) else value
