"""The little that a profile's check knows of SGLang's flags without asking a host."""

from __future__ import annotations

import re

from tui.profile.model import SENSITIVE, ArgValue
from tui.profile.words import FLAG

NO_SUCH_FLAG = {  # flags that no SGLang from 0.3.6 to 0.5.23 has, although notes and posts quote them
    "hierarchical-cache-limit": "hicache-size",
    "hierarchical-cache-size": "hicache-size",
    "hierarchical-cache-ratio": "hicache-ratio",
    "hicache-limit": "hicache-size",
    "hicache-gb": "hicache-size",
    "gpu-memory-utilization": "mem-fraction-static",
    "max-model-len": "context-length",
    "tensor-parallel-size": "tp-size",
    "max-num-seqs": "max-running-requests",
}
OWN_KEYS = {"port": "port", "cuda-visible-devices": "gpus"}  # keys of the server, never flags
BARE = re.compile(r"(enable|disable|skip)-")  # flags that take no value


def flag_error(flag: str, value: ArgValue) -> str:
    """Why SGLang cannot start with this flag and value; empty when nothing is known against it."""
    if why := FLAG.error(flag):
        return why
    if flag in OWN_KEYS:
        return f"belongs to the server: use its key {OWN_KEYS[flag]!r}"
    if flag == "hicache-size" and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        return f"takes a whole number of GB, not {value!r}"
    if flag == "mem-fraction-static" and not (isinstance(value, float) and 0 < value < 1):
        return f"takes a share of the GPU between 0 and 1, not {value!r}"
    if BARE.match(flag) and isinstance(value, str) and value.lower() in ("true", "false", "yes", "no", "on", "off"):
        return f"is the text {value!r}; write true or false, without quotes"
    return ""


def flag_warning(flag: str, value: ArgValue) -> str:
    """What is doubtful about this flag and value; empty when nothing is."""
    if flag in NO_SUCH_FLAG:
        return f"no SGLang has this flag; did you mean {NO_SUCH_FLAG[flag]!r}?"
    if SENSITIVE.search(flag) and isinstance(value, str):
        return "a secret in plain text; write !secret NAME and export NAME"
    if isinstance(value, str) and value.lower() in ("true", "false", "yes"):
        return f"passes the text {value!r}; write true without quotes for a flag without a value"
    return ""
