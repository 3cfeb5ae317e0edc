"""``hcs-tui schema``: what a profile's file and a report look like, for editors and scripts."""

from __future__ import annotations

import click

from tui.cli.options import print_json


@click.command("schema")
@click.argument("kind", type=click.Choice(["profile", "report"]))
def command(kind: str) -> None:
    """Print the JSON Schema of a profile's file, or of the report of a server."""
    if kind == "profile":
        from tui.profile.schema import profile_schema

        print_json(profile_schema())
    else:
        from tui.report.schema import report_schema

        print_json(report_schema())
