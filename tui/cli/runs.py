"""``hcs-tui runs``: the runs that the hosts keep; ``compare`` some of them; ``prune`` old ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import click

from tui.cli.asking import Asker
from tui.cli.errors import CommandError, fail
from tui.cli.exits import Exit
from tui.cli.options import json_option, narrate, open_profile, print_json, print_text, profile_argument
from tui.cli.waiting import heard
from tui.fleet.runs import GLANCE, WHOLE, PastRun, RunsOfHost, hosts_of, runs_of
from tui.host.api import HostError, PrunedRun, RunRecord
from tui.profile.model import Host, Profile, Server
from tui.report.runs import (
    comparison,
    comparison_csv,
    comparison_json,
    comparison_markdown,
    comparison_text,
    run_report,
    runs_table,
    size,
)

Found = TypeVar("Found")
LOOKS = 200  # logs of a host that a list reads; launches keep 20 runs of a server


class RunsGroup(click.Group):
    """``runs PROFILE`` lists: what is no other subcommand is a profile."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["compare", "prune"]


@click.group("runs", cls=RunsGroup, subcommand_metavar="PROFILE [SERVER] [--json] | compare … | prune …")
def command() -> None:
    """The runs of a profile's servers that their hosts keep, living and ended, newest first.

    Each launch keeps a server's newest 20 runs and 10 GB of them; `runs prune` drops more.
    """


@command.command("list", hidden=True)
@profile_argument
@click.argument("server", required=False)
@json_option
def list_runs(profile: str, server: str | None, as_json: bool) -> Exit:
    """The runs of a profile's servers, or of SERVER, newest first."""
    loaded = open_profile(profile)
    return asyncio.run(_list(loaded, loaded.select([server] if server else []), server, as_json))


async def _list(profile: Profile, servers: Sequence[Server], server: str | None, as_json: bool) -> Exit:
    async def of_host(host: RunsOfHost) -> list[PastRun]:
        records = await host.records(profile.name, server)
        if len(records) > LOOKS:
            narrate(f"{host.host.name}: of {len(records)} runs the logs of the newest {LOOKS} were read")
        read = [await host.look(record, GLANCE) for record in records[:LOOKS]]
        return read + [host.unread(record) for record in records[LOOKS:]]

    found, code = await _everywhere(servers, of_host)
    runs = sorted((run for part in found for run in part), key=lambda run: run.record.started, reverse=True)
    now = time.time()
    if as_json:
        print_json({"runs": [run_report(run, now) for run in runs]})
    else:
        if runs or code is Exit.OK:  # of a host that did not answer nobody knows whether it keeps any
            print_text(runs_table(runs, now))
    return code


@asynccontextmanager
async def _runs_of(host: Host, ask: Asker) -> AsyncIterator[RunsOfHost]:
    async with AsyncExitStack() as stack:
        yield await heard(host, stack.enter_async_context(runs_of(host, ask)), lambda: ask.asking)


async def _everywhere(
    servers: Sequence[Server], work: Callable[[RunsOfHost], Awaitable[Found]]
) -> tuple[list[Found], Exit]:
    """``work`` on each host at once; those that cannot be reached are told, and make the exit code 4."""
    ask = Asker()

    async def on(host: Host) -> Found:
        async with _runs_of(host, ask) as runs:
            return await work(runs)

    hosts = hosts_of(servers)
    results = await asyncio.gather(*map(on, hosts), return_exceptions=True)
    found: list[Found] = []
    code = Exit.OK
    for host, result in zip(hosts, results, strict=True):
        if isinstance(result, HostError):
            narrate(f"{host.name}: {result}")
            code = Exit.UNREACHABLE
        elif isinstance(result, BaseException):
            raise result
        else:
            found.append(result)
    return found, code


@command.command("compare")
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
@json_option
@click.option("--csv", "form", flag_value="csv", help="Print comma-separated values.")
@click.option("--markdown", "form", flag_value="markdown", help="Print a table for a wiki.")
def compare(runs: tuple[str, ...], as_json: bool, form: str | None) -> Exit:
    """What differs between runs: flags, seconds per stage, pools, throughput, outcome.

    A RUN is PROFILE:SERVER/ID, by the beginning of its id; PROFILE:SERVER is the newest run, PROFILE:SERVER/~1 the
    one before it.
    """
    if len(runs) < 2:
        fail("a comparison takes two runs or more, as PROFILE:SERVER or PROFILE:SERVER/ID")
    return asyncio.run(_compare([_reference(run) for run in runs], as_json, form))


def _reference(text: str) -> tuple[Profile, Server, str]:
    """``PROFILE:SERVER/ID``, its profile loaded. Ends the command where it is none."""
    name, colon, rest = text.rpartition(":")
    if not colon or not name:
        fail(f"{text!r} names no run: it takes PROFILE:SERVER or PROFILE:SERVER/ID")
    profile = open_profile(name, quiet=True)
    if any(server.name == rest for server in profile.servers):
        return profile, profile.server(rest), ""
    server, _, run = rest.rpartition("/")
    return profile, profile.server(server or rest), run if server else ""


async def _compare(references: Sequence[tuple[Profile, Server, str]], as_json: bool, form: str | None) -> Exit:
    found, ask = [], Asker()
    for profile, server, name in references:
        async with _runs_of(server.host, ask) as host:
            record = _choose(await host.records(profile.name, server.name), server.name, name)
            found.append(await host.look(record, WHOLE))
        if (record.log_size or 0) > 2 * WHOLE:
            narrate(f"{server.name}/{record.run}: the middle of its log was left out")
    now = time.time()
    rows = comparison(found)
    if as_json:
        print_text(comparison_json(found, rows, now))
    else:
        form_of = {"csv": comparison_csv, "markdown": comparison_markdown, None: comparison_text}
        print_text(form_of[form](rows))
    return Exit.OK


def _choose(records: Sequence[RunRecord], server: str, name: str) -> RunRecord:
    """The newest for no ``name``, the one before it for ``~1``, else the one whose id begins with ``name``."""
    if (name.startswith("~") and name[1:].isdecimal()) or not name:
        back = int(name[1:] or 0)
        if back < len(records):
            return records[back]
        raise CommandError(
            f"{server} has {len(records)} {'run' if len(records) == 1 else 'runs'}, none {back} before the newest"
        )
    fitting = [record for record in records if record.run.startswith(name)]
    if len(fitting) == 1 or (fitting and fitting[0].run == name):
        return fitting[0]
    ids = ", ".join(record.run for record in (fitting or records)[:5])
    what = f"several runs that begin with {name!r}" if fitting else f"no run {name!r}"
    raise CommandError(f"{server} has {what}; there are {ids}" if ids else f"{server} never ran")


@command.command("prune")
@profile_argument
@click.argument("server", required=False)
@click.option("--keep", type=click.IntRange(min=1), default=20, show_default=True, help="Runs of a server to keep.")
@click.option("--max-gb", type=click.FloatRange(min=0), default=10.0, show_default=True, help="GB of a server to keep.")
@click.option("--dry-run", "dry", is_flag=True, help="Only say what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def prune(profile: str, server: str | None, keep: int, max_gb: float, dry: bool, yes: bool) -> Exit:
    """Delete old runs on their hosts, with their logs: never one that runs, never a server's newest."""
    loaded = open_profile(profile)
    servers = loaded.select([server] if server else [])

    def once(only_look: bool) -> tuple[list[PrunedRun], Exit]:
        return asyncio.run(_prune(loaded, servers, server, keep, max_gb * 1e9, only_look))

    found, code = once(True)
    _tell(found, "would be deleted" if dry else "to delete")
    if not found and code is Exit.OK:
        narrate("nothing to delete")
    if dry or not found or code is not Exit.OK:
        return code
    if not yes and not _confirmed(len(found)):
        return Exit.OK
    found, code = once(False)
    left = [run for run in found if not run.gone]
    _tell([run for run in found if run.gone], "deleted")
    _tell(left, "NOT deleted: look at its permissions")
    return Exit.FAILED if left else code


def _confirmed(count: int) -> bool:
    """Whether somebody wants ``count`` runs deleted; ends the command where nobody is there to ask."""
    what = "the run with its log" if count == 1 else f"{count} runs with their logs"
    try:
        return click.confirm(f"Delete {what}?", err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            narrate("")  # behind the question
            fail("nothing was deleted, since nobody answered: --yes deletes without asking")
        raise


async def _prune(
    profile: Profile, servers: Sequence[Server], server: str | None, keep: int, keep_bytes: float, dry: bool
) -> tuple[list[PrunedRun], Exit]:
    async def of_host(host: RunsOfHost) -> list[PrunedRun]:
        names = {record.server for record in await host.records(profile.name, server)}
        return [run for name in sorted(names) for run in await host.prune(profile.name, name, keep, keep_bytes, dry)]

    found, code = await _everywhere(servers, of_host)
    return [run for part in found for run in part], code


def _tell(runs: Sequence[PrunedRun], what: str) -> None:
    for run in runs:
        print_text(f"{what}  {run.server}/{run.run}  {size(run.bytes)}  {run.folder}")
    if len(runs) > 1:
        print_text(f"{what}: {len(runs)} runs, {size(sum(run.bytes for run in runs))}")
