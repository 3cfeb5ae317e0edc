"""Answers to questions about a server that change nothing: how it is launched, its earlier runs, their logs."""

from __future__ import annotations

import shlex
from pathlib import Path

from tui.fleet.api import FetchLog, Outcome, PastRuns
from tui.fleet.edit import flag_texts
from tui.fleet.hosts import HostWatch
from tui.fleet.logreader import LogReader, spooled_reader
from tui.fleet.places import Places
from tui.fleet.runs import RunsOfHost
from tui.fleet.supervisor import Supervisor
from tui.host.api import HostError, Link, RunRecord

_STEP = 1 << 20  # bytes of a log that are asked for at once
MOST_RUNS = 50


def describe(supervisor: Supervisor) -> Outcome:
    """How a server is launched; of one that was found, the command that it runs."""
    server, info, run = supervisor.server, supervisor.state.info, supervisor.state.run
    if info.stranger:
        command = info.stranger.command or (shlex.join(run.command) if run else "")
        return Outcome(True, f"{info.name}: as it was found running", {"flags": {}, "command": command})
    details = {"flags": flag_texts(server), "command": server.command_line()}
    return Outcome(True, f"{server.name}: as it is launched", details)


async def look_up(watch: HostWatch, supervisor: Supervisor, places: Places, asked: PastRuns | FetchLog) -> Outcome:
    """Ask a host about a server's runs."""
    try:
        hello = await watch.require()
        runs = RunsOfHost(supervisor.server.host, watch.link, hello)
        records = await runs.records(supervisor.profile, asked.server)
        if isinstance(asked, PastRuns):
            wanted = [record for record in records[:MOST_RUNS] if not asked.logs or record.run in asked.logs]
            found = tuple([await runs.look(record) if asked.logs else runs.unread(record) for record in wanted])
            return Outcome(True, f"{asked.server}: {len(found)} runs", {"runs": found})
        record = next((record for record in records if record.run == asked.run), None)
        if record is None:
            return Outcome(False, f"{asked.server}: its host keeps no run {asked.run}")
        return await _fetched(watch.link, places, supervisor.profile, record)
    except HostError as error:
        return Outcome(False, f"{asked.server}: {error}", {"error": error.kind.value})


async def _fetched(link: Link, places: Places, profile: str, record: RunRecord) -> Outcome:
    """Spool what is missing of a run's log, up to where it ended when it was asked for."""
    reader = spooled_reader(places.spool, profile, record.server, record.run)
    try:
        path = await _spool(link, reader, record)
    finally:
        reader.close()
    if path is None:
        return Outcome(False, f"{record.server}/{record.run}: {reader.trouble}")
    return Outcome(True, f"{record.server}/{record.run}: its log", {"path": path})


async def _spool(link: Link, reader: LogReader, record: RunRecord) -> Path | None:
    reader.open()
    size = record.log_size or 0
    while reader.offset < size and not reader.trouble:
        data = await link.read(record.run, reader.offset, min(_STEP, size - reader.offset))
        if not data:
            break
        reader.feed(reader.offset, data)
    return None if reader.trouble else reader.path
