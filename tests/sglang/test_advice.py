"""Advice: every number in it, put back into the arithmetic, holds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sglang.test_memory import fits_room
from tui.sglang import memory
from tui.sglang.advice import advise
from tui.sglang.advice_flags import nearest_flag
from tui.sglang.advice_memory import gpu_need, host_need, lower_fraction
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Failure, FailureKind, Pool, Stage
from tui.sglang.short import WIDTH, short

USERS_LINE = (
    "ValueError: Not enough host memory available. Requesting 150.10 GB but only have 48.20 GB free. "
    "Please reduce the size of the hierarchical cache."
)
USERS_FACTS = LogFacts(
    version="0.5.12",
    args={"hicache_size": "150", "enable_hierarchical_cache": "True", "tp_size": "1"},
    pools=(
        Pool("device", "Mamba", 9.38, "GiB", slots=48),
        Pool("device", "KV", 9.02, "GiB", tokens=147456),
        Pool("host", "KV", 150.0, "GB"),
    ),
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. "
    "GPU 3 has a total capacity of 79.11 GiB of which 512.00 MiB is free."
)


def failure(kind: FailureKind, line: str, facts: LogFacts) -> Failure:
    return Failure(kind, line, 1, "why", advise(kind, line, facts))


def test_the_first_users_host_memory() -> None:
    found = failure(FailureKind.OOM_HOST_HICACHE, USERS_LINE, USERS_FACTS)
    assert found.advice[0] == (
        "150.10 GB asked for the Mamba pool after 150.00 GB for KV, 48.2 GB left after SGLang's 10 GiB reserve: "
        "this SGLang (0.5.12) takes --hicache-size once per pool and rank; (150.0 + 48.2) / 2 pools / 1 rank, "
        "less 0.5 GB for rounding: --hicache-size 98 or less fits."
    )
    assert short(found) == "host memory: wants 150.10 GB, 48.2 GB free → --hicache-size 98 or less"


def test_what_is_free_is_the_number_that_its_line_tells() -> None:
    """Where SGLang's line tells of all that is free, its reserve is told beside it."""
    line = "ValueError: Not enough host memory available. Requesting 38.00 GB but only have 42.31 GB free."
    told = short(failure(FailureKind.OOM_HOST_HICACHE, line, LogFacts(args={"hicache_size": "38"})))
    assert told.startswith("host memory: wants 38.00 GB, 42.31 GB free, 10.7 of it reserved → --hicache-size 3")


@pytest.mark.parametrize("version", ["0.4.8", "0.5.3", "0.5.12", "0.5.16", "0.5.17", "0.5.19", "0.5.23", None])
@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize("held", [0.0, 40.0])
def test_the_advised_size_fits(version: str | None, ranks: int, held: float) -> None:
    pools = (Pool("device", "Mamba", 4.0, "GiB"),) + ((Pool("host", "KV", held, "GB", ranks=ranks),) if held else ())
    facts = LogFacts(version=version, args={"hicache_size": "60", "tp_size": str(ranks)}, pools=pools)
    line = "ValueError: Not enough host memory available. Requesting 60.10 GB but only have 50.00 GB free."
    need = host_need(line, facts)
    assert need is not None
    advice = advise(FailureKind.OOM_HOST_HICACHE, line, facts)[0]
    found = re.search(r"--hicache-size (\d+) or less fits", advice)
    if found is None:
        assert "no --hicache-size fits" in advice
        assert not fits_room(1, need.room_gb, need.sizes + need.beside, need.ranks)
        return
    size = int(found[1])
    assert fits_room(size, need.room_gb, need.sizes + need.beside, need.ranks)
    assert not fits_room(size + 1, need.room_gb, need.sizes + need.beside, need.ranks)
    # and it fits the plan: what all ranks take is no more than what they may
    total = memory.plan({**facts.args, "hicache_size": size, "enable_hierarchical_cache": True}, version, True).total_gb
    shared = memory.version_tuple(version) is not None and (memory.version_tuple(version) or (0,)) >= (0, 5, 19)
    assert total is not None and total <= need.room_gb * (ranks if shared else 1)


def test_before_0_4_9_the_reserve_is_not_told() -> None:
    """It said 42.31 GB free and refused 38: the 10 GiB that stay free are not in the message."""
    line = "ValueError: Not enough host memory available. Requesting 38.00 GB but only have 42.31 GB free."
    need = host_need(line, LogFacts())
    assert need is not None
    assert need.free_gb == pytest.approx(42.31 - memory.RESERVE_GB)
    assert need.asked_gb > need.free_gb
    assert "31.6 GB free less SGLang's 10 GiB reserve" in advise(FailureKind.OOM_HOST_HICACHE, line, LogFacts())[0]


def test_a_size_below_the_device_pool_is_no_way_out() -> None:
    facts = LogFacts(version="0.5.9", args={"hicache_size": "60"}, pools=(Pool("device", "KV", 50.0, "GiB"),))
    line = "Not enough host memory available. Requesting 60.00 GB but only have 30.00 GB free."
    told = advise(FailureKind.OOM_HOST_HICACHE, line, facts)
    assert "53.7 GB of the device pool" in told[1]
    assert memory.device_gb(facts.pools) == pytest.approx(53.687, abs=1e-3)


def test_static_memory() -> None:
    facts = LogFacts(args={"mem_fraction_static": "0.84"}, free_before_gib=44.01, free_after_gib=5.90)
    line = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    found = failure(FailureKind.OOM_GPU_STATIC, line, facts)
    numbers = re.search(r"keeps ([\d.]+) .* so (-?[\d.]+) are left .* above ([\d.]+); ([\d.]+) leaves", found.advice[0])
    assert numbers is not None
    kept, room, least, enough = map(float, numbers.groups())
    assert kept == pytest.approx(44.01 * (1 - 0.84), abs=0.006)
    assert room == pytest.approx(memory.kv_room_gib(44.01, 5.90, 0.84), abs=0.006) and room < 0
    assert memory.kv_room_gib(44.01, 5.90, least - 0.001) < 0 < memory.kv_room_gib(44.01, 5.90, least + 0.001)
    assert memory.kv_room_gib(44.01, 5.90, enough) >= 0.05 * 44.01
    assert short(found).endswith(f"→ --mem-fraction-static {enough:g}")


def test_a_model_that_does_not_fit() -> None:
    told = advise(
        FailureKind.OOM_GPU_STATIC, "Not enough memory.", LogFacts(free_before_gib=60.92, free_after_gib=0.16)
    )
    assert "does not fit" in told[0] and "--tp-size" in told[0]


@pytest.mark.parametrize("kind", [FailureKind.OOM_GPU_STATIC, FailureKind.OOM_CUDA_GRAPH, FailureKind.OOM_GPU_RUNTIME])
def test_gpu_memory(kind: FailureKind) -> None:
    facts = LogFacts(args={"mem_fraction_static": "0.88", "cuda_graph_max_bs": "160"}, version="0.5.12")
    need = gpu_need(OOM)
    assert need is not None and (need.gpu, need.asked_gib, need.free_gib) == (3, 2.5, 0.5)
    found = failure(kind, OOM, facts)
    lower = re.search(r"--mem-fraction-static from 0.88 to ([\d.]+)", found.advice[0])
    assert lower is not None
    freed = (0.88 - float(lower[1])) * need.total_gib
    assert need.missing_gib + 1 <= freed <= need.missing_gib + 1 + 0.01 * need.total_gib
    if kind is FailureKind.OOM_CUDA_GRAPH:
        assert "--cuda-graph-max-bs from 160 to 80" in found.advice[0]
    assert short(found).endswith(f"--mem-fraction-static {lower[1]}")


@given(st.floats(0.3, 0.99), st.floats(0.001, 20), st.floats(0, 20), st.floats(20, 200))
def test_a_lower_fraction_frees_what_was_missing(fraction: float, asked: float, free: float, total: float) -> None:
    need = gpu_need(
        f"Tried to allocate {asked:.2f} GiB. GPU 0 has a total capacity of {total:.2f} GiB "
        f"of which {free:.2f} GiB is free"
    )
    assert need is not None
    assert (fraction - lower_fraction(fraction, need)) * need.total_gib >= need.missing_gib + 1 - 1e-6


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--reasoning_parser", "--reasoning-parser"),
        ("--hierarchical-cache-limit", "--hicache-size"),
        ("--enable-reasoning", "--reasoning-parser"),
        ("--mem-fraction-sttaic", "--mem-fraction-static"),
        ("--gpu-memory-utilization", "--mem-fraction-static"),
        ("--zzz", None),
        ("--enable-prefix-caching", None),
    ],
)
def test_nearest_flag(flag: str, meant: str | None) -> None:
    assert nearest_flag(flag) == meant


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "launch_server.py: error: unrecognized arguments: --hierarchical-cache-limit 150",
            "--hierarchical-cache-limit → --hicache-size",
        ),
        ("launch_server.py: error: argument --hicache-size: invalid int value: '0.5'", "whole numbers"),
        (
            "x: error: argument --load-format: invalid choice: 'safetensor' (choose from 'auto', 'safetensors')",
            "Nearest: safetensors",
        ),
        ("x: error: the following arguments are required: --model-path/--model", "Add --model-path/--model."),
        ("x: error: ambiguous option: --cuda-graph-max-bs could match --a, --b", "--a, --b"),
        ("x: error: unrecognized arguments: 3", "belong to no flag: 3"),
        ("x: error: unrecognized arguments: --enable-prefix-caching", "SGLang does that without a flag"),
    ],
)
def test_command_line(line: str, words: str) -> None:
    assert words in advise(FailureKind.BAD_ARGUMENT, line, LogFacts())[0]


def test_weights_that_do_not_fit_are_not_a_matter_of_the_fraction() -> None:
    first = advise(FailureKind.OOM_GPU_STATIC, OOM, LogFacts(stage=Stage.LOADING_WEIGHTS))[0]
    assert "does not change" in first and "lower" not in first


def test_many_choices_are_said_to_be_more() -> None:
    names = ", ".join(f"'backend{i}'" for i in range(20))
    line = f"x: error: argument --attention-backend: invalid choice: 'nonsense' (choose from {names})"
    (advice,) = advise(FailureKind.BAD_ARGUMENT, line, LogFacts())
    assert "Nearest" not in advice  # nothing is near
    assert advice.endswith("backend11 and 8 more.")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/data/models/x'. Use "
            "`repo_type` argument if needed.",
            "`ls /data/models/x`",
        ),
        (
            "HFValidationError: Repo id must use alphanumeric chars or '-', '_', '.', '--' and '..' are forbidden: "
            "'/data/located/401'.",
            "`ls /data/located/401`",
        ),
        ("OSError: Qwen/Nope is not a local folder and is not a valid model on 'https://hub/models'", "Qwen/Nope is"),
        ("OSError: We couldn't connect to 'https://hub' to load the files", "download the model first"),
        (
            "403 Client Error. Cannot access gated repo for url https://hub/meta/Llama/resolve/main/c.json.",
            "meta/Llama",
        ),
    ],
)
def test_the_model_that_a_library_names(line: str, words: str) -> None:
    assert words in advise(FailureKind.MODEL_NOT_FOUND, line, LogFacts())[0]


def test_an_error_that_names_nothing_is_not_said_to_name_it() -> None:
    line = "AttributeError: 'NoneType' object has no attribute 'shape'"
    assert "names none" in advise(FailureKind.BAD_FLAG_COMBINATION, line, LogFacts())[0]


def test_who_holds_the_port() -> None:
    line = (
        "ValueError: rpc_port at 35001 is not available in 30 seconds. rpc_port is used by a process already. "
        "process.name()='sglang::schedul' process.cmdline()=['sglang::scheduler_TP0'] "
        "process.status()='sleeping' pid=77120"
    )
    told = advise(FailureKind.PORT_IN_USE, line, LogFacts())[0]
    assert "77120" in told and "35001" in told and "leftover" in told
    line = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use"
    told = advise(FailureKind.PORT_IN_USE, line, LogFacts(args={"port": "30000"}))[0]
    assert "sport = :30000" in told and "--port" in told


def test_out_of_memory_killer_with_what_hicache_took() -> None:
    facts = LogFacts(args={"hicache_size": "15"}, pools=(Pool("host", "KV", 15.0, "GB", ranks=8),))
    told = advise(FailureKind.OS_OOM_KILLED, "Killed", facts)[0]
    assert "120.0 GB" in told and "8 ranks" in told
    assert memory.host_gb(facts.pools) == 120
    planned = advise(
        FailureKind.OS_OOM_KILLED,
        "Killed",
        LogFacts(args={"hicache_size": "15", "enable_hierarchical_cache": "True", "tp_size": "8"}),
    )
    assert "120 GB" in planned[0]


@given(
    st.sampled_from(list(FailureKind)),
    st.text(max_size=300),
    st.dictionaries(
        st.sampled_from(["hicache_size", "port", "mem_fraction_static", "model_path"]), st.text(max_size=9)
    ),
)
def test_every_kind_advises_on_any_line(kind: FailureKind, line: str, args: dict[str, str]) -> None:
    told = advise(kind, line, LogFacts(args=args))
    assert told and all(told)
    assert len(short(Failure(kind, line, 1, "It failed.", told))) <= WIDTH + 90
