"""The command line of a simulated server: SGLang's flags of its release (``flags.tsv``) and the demo's own."""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.demo.lines import DEFAULT_VERSION, Dialect, version_key
from tui.demo.scenarios import SCENARIOS, Scenario
from tui.demo.sizes import GB, QWEN

_ALIASES = {
    "model_path": ("--model",),
    "tp_size": ("--tensor-parallel-size", "--tp"),
    "dp_size": ("--data-parallel-size",),
}
_NUMBERS = frozenset(
    {"max_running_requests", "max_total_tokens", "max_mamba_cache_size", "context_length", "nccl_port"}
)
_FRACTIONS = frozenset({"mem_fraction_static"})


@dataclass(frozen=True, slots=True)
class Options:
    """What a simulated server was asked to be. ``flags`` is what ``server_args=`` shows: every flag and its value."""

    scenario: Scenario
    dialect: Dialect
    flags: Mapping[str, object]
    argv: tuple[str, ...]
    speed: float
    seed: int
    reserve_mb: int

    @property
    def port(self) -> int:
        return int(str(self.flags["port"]))

    @property
    def host(self) -> str:
        return str(self.flags["host"])

    @property
    def model(self) -> str:
        return str(self.flags["model_path"])

    @property
    def ranks(self) -> int:
        return int(str(self.flags["tp_size"]))

    @property
    def hicache_gb(self) -> int:
        """Decimal GB per host pool, 0 without HiCache."""
        return int(str(self.flags["hicache_size"])) if self.flags.get("enable_hierarchical_cache") else 0

    @property
    def host_pools(self) -> tuple[int, int]:
        """Bytes of the KV and the Mamba host pool.

        ``--hicache-size`` counts for each pool up to 0.5.16, and is divided between them since 0.5.17. Before 0.5.10
        there is none for Mamba.
        """
        size = self.hicache_gb * GB
        if not self.dialect.since("0.5.10"):
            return size, 0
        if not self.dialect.since("0.5.17"):
            return size, size
        kv, mamba = self.scenario.tokens * QWEN.kv_per_token, self.scenario.slots * QWEN.slot
        return size * kv // (kv + mamba), size * mamba // (kv + mamba)

    @property
    def draft_tokens(self) -> int:
        """Draft tokens a step, 0 without speculation."""
        return int(str(self.flags["speculative_num_draft_tokens"] or 4)) if self.flags["speculative_algorithm"] else 0

    @property
    def log_interval(self) -> int:
        return int(str(self.flags["decode_log_interval"]))

    def dump(self) -> str:
        """The ``server_args=`` line of the release."""
        if self.dialect.since("0.5.19"):
            return f"server_args={dict(self.flags)!r}"
        return "server_args=ServerArgs(" + ", ".join(f"{name}={value!r}" for name, value in self.flags.items()) + ")"


def parse(argv: Sequence[str]) -> Options:
    """Read a command line. Exits with status 2 and argparse's words, as SGLang does, when it is wrong."""
    own, rest = _own().parse_known_args(argv)
    dialect = Dialect(own.sglang_version)
    scenario = SCENARIOS[own.scenario]
    defaults = _defaults(dialect)
    # A scenario's flags that the release does not know would be refused; the user's own are judged as they are.
    known = [flag for flag in _grouped(scenario.args) if flag[0].removeprefix("--").replace("-", "_") in defaults]
    flags = vars(_sglang(defaults).parse_args([word for group in known for word in group] + rest))
    return Options(
        scenario=scenario,
        dialect=dialect,
        flags=_resolved(flags, scenario, own.seed),
        argv=tuple(argv),
        speed=own.speed,
        seed=own.seed,
        reserve_mb=own.reserve_mb,
    )


def _own() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch_server.py", add_help=False, allow_abbrev=False)
    environment = os.environ.get
    parser.add_argument("--scenario", choices=tuple(SCENARIOS), default=environment("HCS_DEMO_SCENARIO", "hicache"))
    parser.add_argument(
        "--sglang-version", type=_release, default=environment("HCS_DEMO_SGLANG_VERSION", DEFAULT_VERSION)
    )
    parser.add_argument("--speed", type=_positive, default=environment("HCS_DEMO_SPEED", "1"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reserve-mb", type=int, choices=range(65), metavar="0..64", default=32)
    return parser


def _release(text: str) -> str:
    version_key(text)
    return text


def _positive(text: str) -> float:
    if not 0 < float(text) <= 1000:
        raise ValueError(text)
    return float(text)


def _sglang(defaults: Mapping[str, object]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch_server.py")
    for name, default in defaults.items():
        if name.startswith("_"):
            continue
        names = ["--" + name.replace("_", "-"), *_ALIASES.get(name, ())]
        if isinstance(default, bool):
            parser.add_argument(*names, dest=name, action="store_true", default=default)
        elif isinstance(default, list):
            parser.add_argument(*names, dest=name, nargs="*", default=default)
        else:
            parser.add_argument(*names, dest=name, type=_type(name, default), default=default)
    return parser


def _type(name: str, default: object) -> type:
    if name in _FRACTIONS or isinstance(default, float):
        return float
    return int if name in _NUMBERS or isinstance(default, int) else str


def _defaults(dialect: Dialect) -> dict[str, object]:
    """Every flag that the release knows and its default, in the order of ``server_args=``."""
    found: dict[str, object] = {}
    for row in (Path(__file__).parent / "flags.tsv").read_text().splitlines()[1:]:
        name, since, until, default = row.split("\t")
        if (not since or dialect.since(since)) and not (until and dialect.since(until)):
            found[name] = ast.literal_eval(default)
    return found


def _grouped(words: Sequence[str]) -> list[list[str]]:
    """``--a 1 --b`` → ``[[--a, 1], [--b]]``."""
    groups: list[list[str]] = []
    for word in words:
        if word.startswith("--"):
            groups.append([])
        groups[-1].append(word)
    return groups


def _resolved(flags: dict[str, object], scenario: Scenario, seed: int) -> dict[str, object]:
    """Fill in what a server would find out by itself."""
    flags["model_path"] = flags["model_path"] or "/models/Qwen3.6-27B"
    for name in ("tokenizer_path", "served_model_name"):
        flags[name] = flags[name] or flags["model_path"]
    if flags["mem_fraction_static"] is None:
        flags["mem_fraction_static"] = scenario.mem_fraction
    if flags["speculative_algorithm"] and not flags.get("speculative_draft_model_path"):
        flags["speculative_draft_model_path"] = flags["model_path"]
    if flags["random_seed"] == 42:
        flags["random_seed"] = 100_000_000 + (seed * 7_919_717) % 900_000_000
    return flags
