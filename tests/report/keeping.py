"""Whether a printed report keeps to the printed schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from tui.report.schema import report_schema

_CHECKER = jsonschema.Draft202012Validator(report_schema())


def kept(reports: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The reports, each of which has every key of the schema and no value that it does not allow."""
    listed = list(reports)
    for each in listed:
        _CHECKER.validate(each)
    return listed
