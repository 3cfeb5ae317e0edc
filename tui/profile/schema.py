"""What may stand in a profile's file: its keys, their types and ranges, before anything is merged or filled in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import CoreSchema

from tui.profile.model import ArgValue, Secret, arg_value
from tui.profile.problem import nearest
from tui.profile.words import NAME, address_error

MAX_SECONDS = 30 * 24 * 3600.0
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(value: object) -> float:
    """``90s``, ``15m``, ``1h30m`` or a number of seconds → seconds."""
    if isinstance(value, str):
        parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhd])", value.replace(" ", ""))
        if not parts or "".join(map("".join, parts)) != value.replace(" ", ""):
            raise ValueError(f"{value!r} is no duration; write 90s, 15m or 2h")
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise ValueError("takes a duration such as 90s, 15m or 2h")
    if not math.isfinite(seconds) or not 0 <= seconds <= MAX_SECONDS:
        raise ValueError("out of range; 0s to 30d")
    return seconds


def positive(value: object) -> float:
    """A duration that is not zero."""
    seconds = duration(value)
    if seconds == 0:
        raise ValueError("must be longer than 0s")
    return seconds


def text(value: object) -> str:
    """A word or a line of text that is not empty."""
    if not isinstance(value, str):
        raise ValueError(f"takes text, not {_kind(value)}")
    if not value.strip():
        raise ValueError("is empty")
    return value


def name(value: object) -> str:
    """A name that can be part of a path."""
    if why := NAME.error(text(value)):
        raise ValueError(why)
    return str(value)


def address(value: object) -> str:
    """A destination for SSH: an alias, user@host:port, or ``local``."""
    if why := address_error(text(value)):
        raise ValueError(why)
    if found := re.search(r":(\d+)$", str(value)):
        port(int(found[1]))
    return str(value)


def jump(value: object) -> str:
    """Hosts to hop over, as for ``ssh -J``: addresses with commas between them."""
    return ",".join(address(hop.strip()) for hop in text(value).split(","))


def port(value: object) -> int:
    """A TCP port."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"takes a port, not {_kind(value)}")
    if not 1 <= value <= 65535:
        raise ValueError(f"{value} is out of range; a port is 1 to 65535")
    return value


def counting_port(value: object) -> int | str:
    """A port, or ``30000+`` for one that counts up over the replicas."""
    if isinstance(value, str):
        if not re.fullmatch(r"\d{1,99}\+", value):
            raise ValueError(f"takes a port such as 30000, or 30000+ to count up; not {value!r}")
        port(int(value[:-1]))
        return value
    return port(value)


def gpus(value: object) -> list[int | list[int]]:
    """GPU numbers; an entry of a replica may be a list of its own."""
    if isinstance(value, int):
        value = [value]
    if not isinstance(value, list):
        raise ValueError(f"takes a list of GPU numbers, not {_kind(value)}")
    flat = [one for entry in value for one in (entry if isinstance(entry, list) else [entry])]
    for one in flat:
        if not isinstance(one, int) or isinstance(one, bool):
            raise ValueError(f"takes GPU numbers, not {_kind(one)}")
        if not 0 <= one <= 1023:
            raise ValueError(f"{one} is out of range; a GPU is 0 to 1023")
    if [] in value:
        raise ValueError("an empty list among the GPUs")
    twice = sorted({one for one in flat if flat.count(one) > 1})
    if twice:
        raise ValueError(f"GPU {twice[0]} stands there twice")
    return value


def command(value: object) -> list[str]:
    """A command as a list of words, never a line for a shell."""
    if not isinstance(value, list) or not value:
        raise ValueError("takes a list of words: [/opt/bin/my-server, --port, '{port}']")
    if not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in value):
        raise ValueError("takes words and numbers; put others in quotes")
    return [str(word) for word in value]


def choice(*valid: str) -> Callable[[object], str]:
    """One of ``valid``."""

    def check(value: object) -> str:
        if value not in valid:
            raise ValueError(f"{value!r} is unknown; {nearest(str(value), valid)}")
        return str(value)

    return check


def flag_value(value: object) -> ArgValue | None:
    """A flag's value; ``None`` removes the flag."""
    return None if value is None else arg_value(value)


def env_value(value: object) -> object:
    """A variable's value; ``None`` removes it. Numbers are taken as they were written (see ``expand``)."""
    if value is None or isinstance(value, str | int | float | Secret):
        return value
    raise ValueError(f"takes text, not {_kind(value)}")


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return "nothing" if value is None else names.get(type(value), "a secret")


def _shown(validator: Callable[[Any], object], **schema: object) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(validator), WithJsonSchema(schema)


_SCALAR = {"type": ["boolean", "number", "string", "null"]}
Duration = Annotated[float, *_shown(duration, type=["string", "number"], minimum=0, examples=["90s", "15m", "2h"])]
Positive = Annotated[
    float, *_shown(positive, type=["string", "number"], exclusiveMinimum=0, examples=["90s", "15m", "2h"])
]
Text = Annotated[str, *_shown(text, type="string", minLength=1)]
Name = Annotated[str, *_shown(name, type="string", pattern=f"^{NAME.pattern}$")]
Address = Annotated[str, *_shown(address, type="string", examples=["gpu-host", "user@host:22", "local"])]
Jump = Annotated[str, *_shown(jump, type="string", examples=["bastion", "user@a:22,b"])]
Port = Annotated[
    int | str, *_shown(counting_port, type=["integer", "string"], minimum=1, maximum=65535, pattern=r"^\d+\+$")
]
_GPU = {"minimum": 0, "maximum": 1023}
_GPUS = {"type": ["integer", "array"], **_GPU, "items": {"type": "integer", **_GPU}, "minItems": 1, "uniqueItems": True}
Gpus = Annotated[list[int | list[int]], *_shown(gpus, type=["array", "integer"], **_GPU, items=_GPUS, uniqueItems=True)]
Command = Annotated[list[str], *_shown(command, type="array", items={"type": ["string", "number"]}, minItems=1)]
Flag = Annotated[Any, *_shown(flag_value, **{**_SCALAR, "type": [*_SCALAR["type"], "array"]})]
Variable = Annotated[Any, *_shown(env_value, **_SCALAR)]
ReadyBy = Annotated[str, *_shown(choice("auto", "log", "http"), enum=["auto", "log", "http"])]
Restart = Annotated[str, *_shown(choice("never", "on-failure", "always"), enum=["never", "on-failure", "always"])]


def _mapping(value: object) -> object:
    """An empty mapping may be left out: ``env:`` with nothing behind it."""
    return {} if value is None else value


class _OrNothing:
    """Says of a mapping in the JSON Schema that it may be left out."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(core), {"type": "null"}]}


_MAPPING = (BeforeValidator(_mapping), _OrNothing())


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HostSpec(_Strict):
    """A host as written. Without ``ssh`` its name is the SSH alias."""

    ssh: Address | None = None
    identity: Text | None = None
    known_hosts: Text | None = None
    jump: Jump | None = None
    python: Text | None = None
    state_dir: Text | None = None
    stagger: Duration | None = None


class ServerSpec(_Strict):
    """A server, or the defaults of all servers, as written. ``None`` takes a default back."""

    host: Text | None = None
    python: Text | None = None
    cwd: Text | None = None
    env: Annotated[dict[str, Variable], *_MAPPING] = Field(default_factory=dict)
    log: Text | None = None
    setup: Text | None = None
    ready_by: ReadyBy | None = None
    ready_timeout: Positive | None = None
    stall_after: Positive | None = None
    stop_grace: Duration | None = None
    restart: Restart | None = None
    args: Annotated[dict[str, Flag], *_MAPPING] = Field(default_factory=dict)
    command: Command | None = None
    gpus: Gpus | None = None
    port: Port | None = None


class ProfileSpec(_Strict):
    """A whole file as written."""

    name: Name | None = None
    hosts: Annotated[dict[str, Annotated[HostSpec, *_MAPPING]], *_MAPPING] = Field(
        default_factory=dict, json_schema_extra={"propertyNames": {"pattern": f"^{NAME.pattern}$"}}
    )
    defaults: Annotated[ServerSpec, *_MAPPING] = Field(default_factory=ServerSpec)
    servers: dict[str, Annotated[ServerSpec, *_MAPPING]] = Field(json_schema_extra={"minProperties": 1})


def profile_schema() -> dict[str, object]:
    """The JSON Schema of a profile's file; a ``!secret NAME`` counts as a string."""
    schema = ProfileSpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "hcs-tui profile"}
