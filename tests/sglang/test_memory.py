"""The host-memory arithmetic against what servers really allocated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.sglang import memory
from tui.sglang.model import Pool


def fits_room(size: int, room_gb: float, sizes: float, ranks: int) -> bool:
    """Whether ``--hicache-size size``, taken ``sizes`` times on each of ``ranks``, fits into ``room_gb``."""
    return (size + memory.ROUNDING_GB) * sizes * ranks <= room_gb


@pytest.mark.parametrize(
    ("args", "ranks"),
    [
        ({}, 1),
        ({"tp-size": 8}, 8),
        ({"--tp": "4", "--dp": 2}, 8),
        ({"tp_size": "8", "dp_size": "8", "enable_dp_attention": "True"}, 8),
        ({"tp-size": 16, "nnodes": 2}, 8),
        ({"tp-size": 4, "pp-size": 2, "nnodes": 2}, 4),
        ({"tp-size": "many"}, 1),
    ],
)
def test_ranks_on_host(args: dict[str, object], ranks: int) -> None:
    assert memory.ranks_on_host(args) == ranks


@pytest.mark.parametrize(
    ("version", "hybrid", "total"),
    [
        ("0.5.12", False, 240),
        ("0.5.12", True, 480),
        ("0.5.16", True, 480),
        ("0.5.17", True, 240),
        ("0.5.20", True, 240),
    ],
)
def test_size_per_pool_and_rank(version: str, hybrid: bool, total: float) -> None:
    args = {"enable-hierarchical-cache": True, "hicache-size": 30, "tp-size": 8}
    planned = memory.plan(args, version, hybrid)
    assert planned.total_gb == total
    assert sum(pool.gb or 0 for pool in planned.pools) * planned.ranks == total


def test_the_first_users_own_server() -> None:
    """They capped HiCache at 150 GB and it took 300.1, on a host with about 200 GB free."""
    args = {"model-path": "/models/Qwen3.6-27B", "enable-hierarchical-cache": True, "hicache-size": 150}
    planned = memory.plan(args, "0.5.12")
    assert planned.total_gb == 300
    verdict = memory.fit(planned, int(200e9))
    assert verdict.fits is False
    assert verdict.largest_size is not None
    assert fits_room(verdict.largest_size, 200 - memory.RESERVE_GB, 2, 1)
    assert not fits_room(verdict.largest_size + 1, 200 - memory.RESERVE_GB, 2, 1)
    assert memory.plan(args, "0.5.23").total_gb == 150
    pools = (Pool("host", "KV", 150.0, "GB"), Pool("host", "Mamba", 150.1, "GB"), Pool("device", "KV", 9.0, "GiB"))
    assert memory.host_gb(pools) == pytest.approx(300.1)
    assert memory.planned_host_gb(args, "0.5.12") == 300


def test_ratio_is_known_only_to_the_running_server() -> None:
    planned = memory.plan({"enable-hierarchical-cache": True, "hicache-ratio": 2.5}, "0.5.12")
    assert planned.total_gb is None and planned.ratio == 2.5
    assert memory.fit(planned, int(1e12)).fits is None


def test_without_hicache_nothing_is_planned() -> None:
    assert memory.plan({"hicache-size": 150}).total_gb == 0
    assert memory.planned_host_gb({"hicache-size": 150}) is None


def test_an_unknown_model_may_take_twice() -> None:
    planned = memory.plan({"enable_hierarchical_cache": "True", "hicache_size": "20"}, "0.5.12")
    assert (planned.total_gb, planned.high_gb) == (20, 40)
    assert planned.notes


@given(st.floats(-1e6, 1e6), st.integers(1, 3), st.integers(1, 64))
def test_the_largest_size_fits_and_the_next_does_not(room: float, sizes: int, ranks: int) -> None:
    size = memory.largest_size(room, sizes, ranks)
    if size:
        assert fits_room(size, room + 1e-6, sizes, ranks)
    assert not fits_room(size + 1, room - 1e-6, sizes, ranks)


@given(
    st.dictionaries(
        st.sampled_from(["tp-size", "dp", "nnodes", "hicache-size", "enable-hicache", "hicache-ratio"]),
        st.text() | st.integers(),
    )
)
def test_any_flags_give_a_plan(args: dict[str, object]) -> None:
    planned = memory.plan(args)
    assert planned.ranks >= 1
    memory.fit(planned, 0)


def test_fraction_arithmetic() -> None:
    least = memory.least_fraction(44.01, 5.90)
    assert memory.kv_room_gib(44.01, 5.90, least) == pytest.approx(0)
    assert memory.kv_room_gib(44.01, 5.90, 0.84) < 0
    assert memory.kv_room_gib(44.01, 5.90, memory.least_fraction(44.01, 5.90, 2.0)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "version"), [("0.5.12.post1", (0, 5, 12)), ("v0.4.6", (0, 4, 6)), ("main", None), (None, None)]
)
def test_version(text: str | None, version: tuple[int, int, int] | None) -> None:
    assert memory.version_tuple(text) == version


@pytest.mark.parametrize(
    ("model", "hybrid"),
    [
        ("/models/Qwen3.6-27B", True),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", True),
        ("nvidia/Nemotron-H-8B", True),
        ("Qwen/Qwen3-8B", None),
        ("Qwen/Qwen3-70B", None),
        ("deepseek-ai/DeepSeek-R1", None),
    ],
)
def test_hybrid_models_are_known_by_name(model: str, hybrid: bool | None) -> None:
    assert memory.is_hybrid({"model-path": model}) is hybrid
    assert memory.is_hybrid({"model-path": model, "max-mamba-cache-size": 48}) is True
