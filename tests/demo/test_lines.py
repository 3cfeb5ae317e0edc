"""The tables of lines against the real logs of the same releases, and against the first users' lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui.demo.arguments import parse
from tui.demo.batch_lines import Batch, decode_line, prefill_line
from tui.demo.lines import Dialect, version_key
from tui.demo.startup import Startup
from tui.demo.steps import Bar, Crash, Say

REAL = Path(__file__).parents[1] / "data" / "real"
VERSIONS = ("0.4.9.post6", "0.5.3", "0.5.9", "0.5.12", "0.5.16", "0.5.20", "0.5.23")
REAL_LOGS = {
    "0.4.9.post6": "0.4.9.post6_llama",
    "0.5.1": "0.5.1_llama",
    "0.5.3": "0.5.3_llama",
    "0.5.9": "0.5.9_llama",
    "0.5.12": "0.5.12_llama",
    "0.5.20": "0.5.20_llama",
    "0.5.23": "0.5.23_hybrid_hicache_metrics",
}
BATCH = Batch(
    forward=7, running=3, queued=1, tokens=900, kv=0.1, states=9, mamba=0.2, rate=99.5,
    new_requests=1, new_tokens=50, cached_tokens=10, pending=5,
)  # fmt: skip


def said(*argv: str) -> list[str]:
    return [step.text for step in Startup(parse(argv)).steps() if isinstance(step, Say)]


def real_lines(version: str) -> list[str]:
    """The messages of a real log, without prefix; redrawn bars split."""
    text = (REAL / f"{REAL_LOGS[version]}.log").read_text(errors="replace")
    return [re.sub(r"^\[[^]]*\] ", "", line) for line in re.split(r"[\r\n]+", text)]


def shape(line: str) -> str:
    """A batch line without its figures, and without what only hybrid models or GPUs print otherwise."""
    line = re.sub(r": (-?[\d.]+%?|True|False)", ":", line)
    line = re.sub(r"mamba (num|usage):, ", "", line).replace("full token", "token")
    return line.replace("cpu graph", "cuda graph")


@pytest.mark.parametrize("version", REAL_LOGS)
@pytest.mark.parametrize("kind", ["Prefill", "Decode"])
def test_batch_lines_have_the_fields_of_the_real_ones_in_their_order(version: str, kind: str) -> None:
    real = {shape(line) for line in real_lines(version) if line.startswith(f"{kind} batch")}
    ours = (prefill_line if kind == "Prefill" else decode_line)(Dialect(version), BATCH)
    assert real
    assert shape(ours) in real


@pytest.mark.parametrize("version", REAL_LOGS)
def test_start_up_lines_are_worded_as_the_real_ones(version: str) -> None:
    def worded(line: str) -> str:
        line = re.sub(r"type=\w+|available_\w+_mem|layout=\w+|models\.\S+ .*", "*", line)
        return re.sub(r"-?\d+(\.\d+)?", "#", line)

    real = {worded(line) for line in real_lines(version)}
    ours = {worded(text) for text in said("--sglang-version", version)}
    # The real servers had no GPU, and only the last one had a hybrid model and HiCache.
    elsewhere = (
        "Capture|Ignore" if version == "0.5.23" else "Capture|Ignore|Mamba|Using hybrid|Allocating|Attached|Tree"
    )
    assert not {line for line in ours - real if not re.match(elsewhere, line)}
    assert len(ours & real) >= 6


@pytest.mark.parametrize("version", ["0.5.10", "0.5.12", "0.5.13"])
def test_the_first_users_lines(version: str) -> None:
    lines = said("--sglang-version", version)
    assert "Allocating 150.00 GB host memory for hierarchical KV cache." in lines
    assert "Allocating 150.10 GB host memory for hierarchical Mamba cache (layout=layer_first)." in lines
    assert any("max_running_requests=9," in line for line in lines)
    assert any("max_mamba_cache_size: 48," in line for line in lines)


def test_the_size_is_divided_between_the_pools_since_0_5_17() -> None:
    lines = said("--sglang-version", "0.5.23")
    sizes = [float(found[1]) for line in lines if (found := re.search(r"([\d.]+) GB host memory", line))]
    assert len(sizes) == 2
    assert sum(sizes) == pytest.approx(150, abs=0.3)


@pytest.mark.parametrize(("version", "together"), [("0.5.12", False), ("0.5.16", True)])
def test_speculation_reorders_the_start_up_since_0_5_14(version: str, together: bool) -> None:
    lines = said("--scenario", "mtp", "--sglang-version", version)
    loads = [index for index, line in enumerate(lines) if line.startswith("Load weight end")]
    pools = [index for index, line in enumerate(lines) if line.startswith("Memory pool end")]
    assert len(loads) == len(pools) == 2
    assert (loads[1] < pools[0]) is together


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scenario", ["hicache", "mtp", "plain"])
def test_every_line_is_filled_in(version: str, scenario: str) -> None:
    for step in Startup(parse(["--sglang-version", version, "--scenario", scenario])).steps():
        if isinstance(step, Say):
            assert not re.search(r"[{}]", step.text)
        if isinstance(step, Bar):
            step.label.format(size=1)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_host_cache_that_does_not_fit_fails_in_every_release(version: str) -> None:
    steps = Startup(parse(["--scenario", "host-memory", "--sglang-version", version])).steps()
    (error,) = [step.error for step in steps if isinstance(step, Crash)]
    assert "only have 48.20 GB free" in error


def test_a_smaller_host_cache_fits_where_a_large_one_does_not() -> None:
    def crashes(gigabytes: str) -> bool:
        steps = Startup(parse(["--scenario", "host-memory", "--hicache-size", gigabytes])).steps()
        return any(isinstance(step, Crash) for step in steps)

    assert crashes("150")
    assert crashes("100")
    assert not crashes("98")  # half of the 198.2 GB that are free


@pytest.mark.parametrize(("text", "key"), [("0.5.12", (0, 5, 12, 0)), ("0.4.9.post6", (0, 4, 9, 6))])
def test_releases_are_ordered(text: str, key: tuple[int, int, int, int]) -> None:
    assert version_key(text) == key


@pytest.mark.parametrize("text", ["", "0.5", "0.5.x", "0.5.4.rc1", "main"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        version_key(text)
