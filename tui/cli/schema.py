"""``hcs-tui schema``: what a profile's file and a report look like, for editors and scripts."""

from __future__ import annotations

import click

from tui.cli.options import print_json


@click.command("schema")
@click.argument("kind", type=click.Choice(["profile", "report", "config"]))
def command(kind: str) -> None:
    """Print the JSON Schema of a profile's file, of the report of a server, or of the user's settings."""
    if kind == "profile":
        from tui.profile.schema import profile_schema

        print_json(profile_schema())
    elif kind == "config":
        from tui.cli.config_schema import config_schema

        print_json(config_schema())
    else:
        from tui.report.schema import report_schema

        print_json(report_schema())
