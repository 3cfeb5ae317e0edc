"""What may stand in the user's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import ErrorDetails

from tui.profile.problem import nearest
from tui.view.keys import key_error, movable
from tui.view.theme import theme_names


def _keys(value: object) -> str:
    """One key, or a list of them; each that is none is told, in a line of its own."""
    found = value if isinstance(value, list) else [value]
    words = [str(key) for key in found if isinstance(key, str | int) and not isinstance(key, bool)]
    if not words or len(words) < len(found):
        raise ValueError("takes a key such as t, ctrl+t, f5 or '?', or a list of keys")
    if wrong := [why for key in words if (why := "the comma is written comma" if key == "," else key_error(key))]:
        raise ValueError("\n".join(wrong))
    return ",".join(words)


def _theme(value: object) -> str:
    if value not in theme_names():
        raise ValueError(f"{value!r} is no theme; {nearest(str(value), theme_names())}".rstrip("; "))
    return str(value)


def _yes(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("takes true or false")
    return value


def _command(value: object) -> list[str]:
    fit = isinstance(value, list) and all(isinstance(w, str | int | float) and not isinstance(w, bool) for w in value)
    if not isinstance(value, list) or not value or not fit:
        raise ValueError("takes a list of words, [notify-send, hcs-tui]: it is run without a shell")
    words = [str(word) for word in value]
    if not words[0].strip():
        raise ValueError("its first word is the program, and is empty")
    return words


def _mapping(value: object) -> object:
    return {} if value is None else value


def _shown(validator: Callable[[Any], object], **schema: object) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(validator), WithJsonSchema(schema)


_KEY = {"type": ["string", "integer"], "minLength": 1}
_SEVERAL = {"type": "array", "minItems": 1}
Key = Annotated[str, *_shown(_keys, anyOf=[_KEY, {**_SEVERAL, "items": _KEY}])]
Yes = Annotated[bool, *_shown(_yes, type="boolean")]


class ConfigSpec(BaseModel):
    """The whole file: every key may be missing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: Annotated[dict[str, Key], BeforeValidator(_mapping)] = Field(
        default_factory=dict, json_schema_extra={"type": ["object", "null"], "propertyNames": {"enum": list(movable())}}
    )
    theme: Annotated[str, *_shown(_theme, type="string", enum=list(theme_names()))] = "dark"
    ascii: Yes = False
    bell: Yes = True
    alert_command: Annotated[list[str], *_shown(_command, **_SEVERAL, items={"type": ["string", "number"]})] = Field(
        default_factory=list
    )


def message(told: ErrorDetails) -> str:
    """One mistake in the user's words."""
    match told["type"]:
        case "value_error":
            return str(told["ctx"]["error"])
        case "extra_forbidden":
            return f"unknown key; {nearest(str(told['loc'][-1]), ConfigSpec.model_fields)}".rstrip("; ")
        case "dict_type":
            return "takes a mapping of actions to keys"
        case _:
            return str(told["msg"])


def config_schema() -> dict[str, object]:
    """The JSON Schema of the file of settings."""
    schema = ConfigSpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "hcs-tui config"}
