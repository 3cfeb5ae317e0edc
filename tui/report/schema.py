"""The JSON Schema of a report. Adding a key is free, changing one breaks scripts."""

from __future__ import annotations

from tui.sglang.model import FailureKind, Phase, Stage

Schema = dict[str, object]


def _type(name: str) -> Schema:
    return {"type": name}


def _maybe(name: str) -> Schema:
    return {"type": [name, "null"]}


def _object(properties: dict[str, Schema], *, null: bool = False) -> Schema:
    return {"type": ["object", "null"] if null else "object", "properties": properties, "required": list(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TIME: Schema = {"type": ["string", "null"], "description": "ISO 8601, with an offset where the host's zone is known"}
_STAGES = [stage.value for stage in Stage]
_RATIO: Schema = {"type": ["number", "null"], "minimum": 0}

_POOL = _object(
    {
        "place": {"enum": ["device", "host"]},
        "kind": _type("string"),
        "gb": {"type": "number", "minimum": 0, "description": "per rank, in the unit beside it: the sum of its parts"},
        "unit": {"enum": ["GiB", "GB"]},
        "parts": {"type": "object", "additionalProperties": _type("number")},
        "tokens": _maybe("integer"),
        "slots": _maybe("integer"),
        "layout": _maybe("string"),
        "ranks": {"type": "integer", "minimum": 1},
    }
)

_REPORT: dict[str, Schema] = {
    "name": _type("string"),
    "host": _maybe("string"),
    "run": _maybe("string"),
    "port": _maybe("integer"),
    "url": _maybe("string"),
    "pid": _maybe("integer"),
    "model": _maybe("string"),
    "gpus": _list(_type("integer")),
    "started": _TIME,
    "log": _maybe("string"),
    "phase": {"enum": [phase.value for phase in Phase]},
    "stalled": _type("boolean"),
    "unreachable": _type("boolean"),
    "stage": {"enum": [*_STAGES, None]},
    "stages": _list(_object({"stage": {"enum": _STAGES}, "seconds": _maybe("number"), "start": _TIME})),
    "missing_ranks": _list(_type("string")),
    "sglang_version": _maybe("string"),
    "failure": _object(
        {
            "kind": {"enum": [kind.value for kind in FailureKind]},
            "line": _type("string"),
            "line_number": {"type": "integer", "minimum": 0, "description": "from 1; 0 when no line says it"},
            "explanation": _type("string"),
            "advice": _list(_type("string")),
        },
        null=True,
    ),
    "exit": _object(
        {"status": _maybe("integer"), "signal": _maybe("string"), "oom_killed": _maybe("boolean")}, null=True
    ),
    "pools": _list(_POOL),
    "max_total_num_tokens": _maybe("integer"),
    "max_running_requests": _maybe("integer"),
    "context_len": _maybe("integer"),
    "throughput": _object(
        {"generate": _RATIO, "prefill": _RATIO, "as_of": _TIME, "stale": _type("boolean")},
    ),
    "requests": _object({"running": _maybe("integer"), "queued": _maybe("integer")}),
    "usage": _object({"kv": _RATIO, "mamba": _RATIO, "swa": _RATIO}),
    "speculative": _object(
        {
            "algorithm": _maybe("string"),
            "accept_len": _RATIO,
            "accept_rate": {**_RATIO, "description": "as printed: up to 0.5.10 it counts the bonus token, then not"},
        },
        null=True,
    ),
    "lines": {"type": "integer", "minimum": 0},
    "warnings": _list(_type("string")),
    "restarts": _object(
        {
            "policy": {"enum": ["never", "on-failure", "always"]},
            "by": {"type": ["string", "null"], "description": "who restarts; empty: nobody, null: nobody was asked"},
            "here": {"type": "boolean", "description": "it is this session"},
            "count": {"type": "integer", "minimum": 0, "description": "restarts that this session made"},
            "pending": {"type": "boolean", "description": "a restart is to come"},
            "why": {"type": "string", "description": "of that, or why there is none"},
            "since": _TIME,
            "next": _TIME,
            "ends": _TIME,
        }
    ),
}


def report_schema() -> Schema:
    """The JSON Schema of ``report``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hcs-tui report of a server",
        **_object(_REPORT),
    }
