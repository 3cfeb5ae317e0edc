"""Advice on host memory against SGLang's own check, played through: what is advised starts, one GB more does not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from tui.sglang import memory
from tui.sglang.advice import advise
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import FailureKind, Pool

VERSIONS = ("0.4.6", "0.4.8", "0.5.3", "0.5.9", "0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.23")


@dataclass(frozen=True)
class Start:
    """A launch of HiCache on a host with ``available`` GB free: what it asks for, in which order."""

    version: str
    available: float
    ranks: int
    hybrid: bool
    share: float  # of the size that goes to KV where it is divided

    @property
    def known(self) -> tuple[int, int, int]:
        known = memory.version_tuple(self.version)
        assert known is not None
        return known

    def pools(self, size: float) -> list[tuple[str, float]]:
        """What each rank asks for, in GB, rounded up by up to half a GB in all."""
        if not self.hybrid:
            return [("KV", size + 0.5)]
        if self.known < (0, 5, 17):
            return [("KV", size + 0.5), ("Mamba", size + 0.5)]
        return [("KV", size * self.share + 0.25), ("Mamba", size * (1 - self.share) + 0.25)]

    def fits(self, size: float) -> bool:
        """Whether all pools of all ranks find room, and SGLang's reserve stays free."""
        return self.ranks * sum(gb for _, gb in self.pools(size)) <= self.available - memory.RESERVE_GB

    def refusal(self, size: int) -> tuple[str, tuple[Pool, ...]] | None:
        """SGLang's message, and the pools before it; ``None`` when each rank's check passes, whatever then happens."""
        told: list[Pool] = []
        for kind, gb in self.pools(size):
            free = self.available - self.ranks * sum(pool.gb for pool in told)
            room = free - memory.RESERVE_GB
            room = room / self.ranks if self.known >= (0, 5, 19) else room
            if gb > room:
                printed = free if self.known < (0, 4, 9) else room
                return f"Requesting {gb:.2f} GB but only have {printed:.2f} GB free.", tuple(told)
            tokens = 1000 if self.known >= (0, 5, 17) and kind == "KV" else None
            told.append(Pool("host", kind, gb, "GB", tokens=tokens, ranks=self.ranks))
        return None


starts = st.builds(
    Start,
    st.sampled_from(VERSIONS),
    st.floats(12, 4000),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.booleans(),
    st.floats(0.2, 0.9),
)


def _advised(start: Start, size: int, version: str | None, told: bool = True) -> tuple[int, str]:
    found = start.refusal(size)
    assume(found is not None)
    assert found is not None
    line, hosts = found
    device = (
        Pool("device", "Mamba", 3.0, "GiB", ranks=start.ranks) if start.hybrid else Pool("device", "KV", 3.0, "GiB")
    )
    args = {"hicache_size": str(size), "tp_size": str(start.ranks), "enable_hierarchical_cache": "True"}
    facts = LogFacts(version=start.version if told else None, args=args, pools=(device, *hosts))
    words = advise(
        FailureKind.OOM_HOST_HICACHE, f"ValueError: Not enough host memory available. {line}", facts, version
    )[0]
    number = re.search(r"--hicache-size (\d+) or less fits", words)
    assert number is not None or "no --hicache-size fits" in words
    return (int(number[1]) if number else 0), words


@given(starts, st.integers(1, 4000))
def test_the_advised_size_starts_and_one_more_does_not(start: Start, size: int) -> None:
    # The older message counts the reserve in; a request above even that is read as one that does not.
    assume(start.known >= (0, 4, 9) or not start.hybrid)
    advised, _ = _advised(start, size, None)
    assert advised < size
    if advised:
        assert start.fits(advised - 0.01)  # the message is rounded to two digits
    assert not start.fits(advised + 1.01)


@given(starts, st.integers(1, 4000))
def test_the_version_of_the_host_is_as_good_as_that_of_the_log(start: Start, size: int) -> None:
    assert _advised(start, size, None)[1] == _advised(start, size, start.version, told=False)[1]


@given(starts, st.integers(1, 4000))
def test_without_a_version_the_advice_is_safe_and_says_what_it_assumes(start: Start, size: int) -> None:
    assume(start.known >= (0, 4, 9))  # the reserve may be in the figure or not: only an older log could tell
    advised, words = _advised(start, size, None, told=False)
    if advised:
        assert start.fits(advised - 0.01)
    told = any(pool.tokens for pool in (start.refusal(size) or ("", ()))[1])
    first = not (start.refusal(size) or ("", ()))[1]
    assert ("its log does not tell" in words) == (start.hybrid and first and not told)


# Whose message tells of the host, not of a rank's share; on hosts so small that most are refused at once
refused = st.builds(
    Start,
    st.sampled_from(["0.5.3", "0.5.9", "0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.18"]),
    st.floats(12, 400),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.booleans(),
    st.floats(0.2, 0.9),
)


@given(refused, st.integers(300, 4000))
def test_plan_and_advice_count_alike(start: Start, size: int) -> None:
    """What is planned before a launch, with or without a version, is what the advice after it counts."""
    found = start.refusal(size)
    assume(found is not None and not found[1])
    args = {"hicache_size": size, "tp_size": start.ranks, "enable_hierarchical_cache": True}
    for version in (start.version, None):
        planned = memory.plan(args, version, start.hybrid)
        advised, _ = _advised(start, size, version, told=False)
        largest = memory.fit(planned, int(start.available * 1e9)).largest_size
        assert largest is not None and abs(largest - advised) <= 1  # the message is rounded to two digits


@given(
    st.integers(20, 2000),
    st.floats(0.05, 0.4),
    st.floats(0.01, 0.99),
    st.sampled_from([1, 2, 8]),
    st.sampled_from(["available.", "for DSA indexer hierarchical cache."]),
    st.sampled_from(["0.5.12", "0.5.18", "0.5.23"]),
)
def test_pools_outside_the_size_are_counted(
    size: int, share: float, left: float, ranks: int, words: str, version: str
) -> None:
    """An indexer, or a draft model's pool, takes ``share`` of what the KV pool takes, whatever the size."""
    asked = round(size * share, 2)
    known = memory.version_tuple(version)
    assert known is not None
    checked = 1 if known >= memory.SHARED_CHECK_SINCE else ranks  # whose memory the figure in the message is
    free = round(asked * left, 2)
    line = f"ValueError: Not enough host memory {words} Requesting {asked:.2f} GB but only have {free:.2f} GB free."
    args = {"hicache_size": str(size), "tp_size": str(ranks), "enable_hierarchical_cache": "True"}
    tokens = 1000 if known >= memory.SPLIT_SINCE else None
    facts = LogFacts(
        version=version, args=args, pools=(Pool("host", "KV", float(size), "GB", tokens=tokens, ranks=ranks),)
    )
    number = re.search(r"--hicache-size (\d+) or less fits", advise(FailureKind.OOM_HOST_HICACHE, line, facts)[0])
    assert number is not None
    room = size * checked + free
    assert int(number[1]) * (1 + share) * checked <= room + 0.01
    assert (int(number[1]) + 2) * (1 + share) * checked > room
