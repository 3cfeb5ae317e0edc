"""The user's command for alerts: real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.processes import is_running
from tests.waiting import eventually
from tui.fleet.alarm import WAITING, Alarm


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_it_gets_its_variables_and_no_shell(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = "import os, sys; open(sys.argv[1], 'a').write(os.environ['HCS_SERVER'] + '|' + sys.argv[2] + '\\n')"
    alarm = Alarm([*python(code), str(out), "$HOME; `id`"])
    alarm.ring({"HCS_SERVER": "gpu0\0 $(id)"})
    alarm.ring({"HCS_SERVER": "gpu1"})
    await alarm.rest()
    assert out.read_text() == "gpu0 $(id)|$HOME; `id`\ngpu1|$HOME; `id`\n" and alarm.trouble() == ""


async def test_what_goes_wrong_is_said_once_and_off_the_terminal() -> None:
    alarm = Alarm(python("import sys; print('to stdout'); sys.stderr.write('no\\nroute ' * 9999); sys.exit(3)"))
    alarm.ring({})
    await alarm.rest()
    told = alarm.trouble()
    assert "exit 3: no route no route" in told and len(told) < 400 and "\n" not in told and alarm.trouble() == ""
    alarm = Alarm(["/no/such/program"])
    alarm.ring({})
    await alarm.rest()
    assert alarm.trouble() == "alert_command /no/such/program: no such file or directory"


async def test_one_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "open(sys.argv[1], 'w').write(str(child.pid)); time.sleep(600)"
    )
    alarm = Alarm([*python(code), str(note)], deadline=5.0)
    alarm.ring({})
    await alarm.rest()
    assert "took longer than 5 s, ended" in alarm.trouble()
    child = int(note.read_text())
    await eventually(lambda: not is_running(child))


async def test_a_storm_of_alerts_runs_it_a_limited_number_of_times(tmp_path: Path) -> None:
    code = "import os, sys; open(sys.argv[1], 'a').write(os.environ['N'] + '\\n')"
    alarm = Alarm([*python(code), str(tmp_path / "out")])
    for n in range(1000):
        alarm.ring({"N": str(n)})
    await alarm.rest()
    told = (tmp_path / "out").read_text().split()
    assert len(told) == WAITING and told[-1] == "999"


async def test_without_a_command_nothing_runs() -> None:
    alarm = Alarm([])
    alarm.ring({"PATH": os.environ["PATH"]})
    await alarm.rest()
    assert alarm.trouble() == ""
