"""Numbers that no server can mean are no figures, and harm nothing that draws or reports them."""

from __future__ import annotations

import json

import pytest

from tui.report.json import report
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

LINE = (
    "[2026-07-30 13:35:13] Decode batch, #running-req: {run}, #token: 257, token usage: {use}, cuda graph: True, "
    "gen throughput (token/s): {rate}, #queue-req: 0\n"
)


@pytest.mark.parametrize("huge", ["9" * 400, "1" * 17 + ".5"])
@pytest.mark.parametrize("field", ["run", "use", "rate"])
def test_a_number_of_four_hundred_digits(field: str, huge: str) -> None:
    values = {"run": "3", "use": "0.50", "rate": "93.65", field: huge}
    facts = read([LINE.format(**values).encode()])
    state = reduce(ServerState(ServerInfo("gpu0")), LogRead(0.0, facts))
    told = json.dumps(report(state, 0.0), allow_nan=False)
    assert huge not in told
