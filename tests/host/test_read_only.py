"""A read-only session: its agent refuses whatever would change something on the host, whoever asks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.host.links import HostOf
from tui.host.api import HostError, HostErrorKind, LaunchSpec
from tui.host.connect import open_link


async def test_the_agent_launches_kills_and_leases_nothing(tmp_path: Path) -> None:
    host = HostOf(python=sys.executable, state_dir=str(tmp_path / "state"))
    doer, looker = open_link(host), open_link(host, read_only=True)
    spec = LaunchSpec("p", "s", ("/bin/sleep", "600"))
    try:
        await doer.open()
        await looker.open()
        run = (await doer.launch(spec)).run
        for attempt in (
            looker.launch(LaunchSpec("p", "other", ("/bin/sleep", "600"))),
            looker.kill(run, 0.0),
            looker.leases("p", ["s"], take=True, who="looker"),
            looker.post(1, "/flush_cache", b""),
        ):
            with pytest.raises(HostError, match="read-only") as refused:
                await attempt
            assert refused.value.kind is HostErrorKind.REFUSED
        (record,) = await looker.runs("p")
        assert record.alive and record.run == run and record.kill_asked is None
        assert not (await looker.leases("p", ["s", "other"]))["s"].who
        assert sorted(entry.name for entry in Path(record.log).parents[2].iterdir()) == ["s"], "a look makes no folder"
        taken = (await doer.leases("p", ["s"], take=True, who="ann@laptop"))["s"]
        seen = (await looker.leases("p", ["s"]))["s"]
        assert taken.mine and not seen.mine and (seen.who, seen.since) == ("ann@laptop", taken.since)
    finally:
        report = await doer.kill(run, 0.0)
        await doer.close()
        await looker.close()
    assert not report.left
