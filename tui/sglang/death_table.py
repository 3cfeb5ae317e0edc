"""The part of the failure table about processes that die: watchdogs, crashes, kills, and how the others tell of it."""

from __future__ import annotations

from tui.sglang.failure_row import CAUSE, FAINT, SYMPTOM, Place, Row, row
from tui.sglang.model import FailureKind as K

_E, _S = Place.ENDS, Place.START

_CHILD_9 = "A process of the server was ended by SIGKILL and left no error: most often the kernel's OOM killer."

DEATHS: tuple[Row, ...] = (
    # --- watchdogs
    row(
        r"^(?:\w+ )?[Ww]atchdog timeout \((?!.{0,60}soft=True)",
        K.WATCHDOG,
        "A step took longer than --watchdog-timeout, so SGLang ended itself.",
        _S,
        CAUSE,
        True,
    ),
    row(
        r"ActorDiedError|RayActorError|WorkerCrashedError|NodeDiedError",
        K.CHILD_DIED,
        "A Ray worker of the server died; its own log says why.",
        _E,
        SYMPTOM,
    ),
    # --- it never began
    row(
        r"^\S{0,200}python[\d.]{0,8}: (?:No module named |Error while finding module specification for )'?sglang|"
        r"^\S{1,200}: symbol lookup error: ",
        K.IMPORT_ERROR,
        "The Python that was called has no SGLang, or one that does not fit its libraries.",
        _S,
        CAUSE,
        True,
    ),
    row(
        r"^\S{1,80}: (?:line )?(?:\d+: )?(?:\S{0,200}/)?(?:sglang|python[\d.]{0,8}): (?:(?:command )?not found|"
        r"No such file|Permission denied|cannot execute)|"
        r"^nohup: failed to run command|exec: \"?(?:\S{0,200}/)?(?:sglang|"
        r"python[\d.]{0,8})\"?: (?:executable file |stat |not )",
        K.OTHER,
        "The command that starts SGLang was not found on the host, or in its container.",
        _S,
        CAUSE,
        True,
    ),
    row(
        r"^docker: |^Error response from daemon|nvidia-container-cli: .{0,80}error|^OCI runtime .{0,40}failed",
        K.OTHER,
        "The container could not be started.",
        _S,
        CAUSE - 2,
        True,
    ),
    # --- deaths that say that, not why
    row(
        r"^Child process unexpectedly failed with (?:an exit code |exitcode=)-9\b",
        K.OS_OOM_KILLED,
        _CHILD_9,
        _S,
        SYMPTOM,
        True,
    ),
    row(
        r"^Rank \d+ scheduler is dead|^Child process unexpectedly failed with",
        K.CHILD_DIED,
        "A scheduler process died without an error of its own in the log.",
        _S,
        SYMPTOM - 1,
        True,
    ),
    row(r"^Exit code: -9\b", K.OS_OOM_KILLED, _CHILD_9, _S, SYMPTOM, True),
    row(
        r"^Exit code: -3\b",
        K.CHILD_DIED,
        "A scheduler was ended by SIGQUIT after another had failed.",
        _S,
        FAINT - 2,
        True,
    ),
    row(
        r"^Exit code: -?[1-9]", K.CHILD_DIED, "A scheduler process died without an error of its own.", _S, SYMPTOM, True
    ),
    row(
        r"scheduler died during initialization \(exit code: -9\)",
        K.OS_OOM_KILLED,
        _CHILD_9,
        _E | _S,
        SYMPTOM,
        True,
    ),
    row(
        r"scheduler died during initialization \(exit code: -3\)",
        K.CHILD_DIED,
        "A scheduler was ended by SIGQUIT after another had failed.",
        _E | _S,
        FAINT - 2,
        True,
    ),
    row(
        r"scheduler died during initialization",
        K.CHILD_DIED,
        "A scheduler process died without an error of its own.",
        _E | _S,
        SYMPTOM,
        True,
    ),
    row(
        r"^Subprocess \S+ \(pid=\d+\) crashed with exit code (?!-3\b)",
        K.CHILD_DIED,
        "A process of the server died while it served.",
        _S,
        SYMPTOM,
        True,
    ),
    row(
        r"^Fatal Python error: (?:Segmentation fault|Bus error|Illegal instruction|Floating point exception)",
        K.CHILD_DIED,
        "A process of the server crashed in native code.",
        _S,
        CAUSE - 4,
        True,
    ),
    row(
        r"^Fatal Python error: ", K.CHILD_DIED, "A process of the server was aborted by native code.", _S, SYMPTOM, True
    ),
    row(
        r"^!{3,} (?:Segfault|SIGSEGV|Bus error) encountered !{3,}",
        K.CHILD_DIED,
        "A process crashed in native code.",
        _S,
        SYMPTOM + 1,
        True,
    ),
    row(
        r"^(?:free|malloc|realloc|munmap_chunk|malloc_consolidate)\(\): |^double free or corruption|"
        r"^corrupted (?:size vs|double-)|"
        r"^\*\*\* SIG[A-Z]{3,6} received at time=|"
        r"^F\d{4,8} [\d:.]{8,20} +\d+ \S{1,120}\] ",
        K.CHILD_DIED,
        "A process of the server crashed in native code.",
        _S,
        SYMPTOM + 2,
        True,
    ),
    row(
        r"^terminate called (?:after throwing|without an active)",
        K.CHILD_DIED,
        "A process of the server was aborted by native code.",
        _S,
        SYMPTOM,
        True,
    ),
    row(
        r"^Scheduler or DataParallelController \d+ terminated with (?!0\b|None\b)",
        K.CHILD_DIED,
        "The scheduler of this node ended.",
        _S,
        SYMPTOM,
        True,
    ),
    row(
        r"(?i)\b(?:sglang |the )?server (?:task|process) (?:ended|exited|died|terminated|crashed)|"
        r"server exited with code (?!0\b)",
        K.CHILD_DIED,
        "The program around SGLang saw it end; SGLang itself gave no reason.",
        _S,
        FAINT + 1,
        True,
    ),
    row(
        r"^(?:Received sigquit from a child proces|SIGQUIT received\.)",
        K.CHILD_DIED,
        "A process of the server failed; its own error is not in this log.",
        _S,
        FAINT - 3,
        True,
    ),
    row(
        r"^(?:\S{1,60}: line \d+: +)?(?:\d+ )?Killed\b(?: +\S|$)",
        K.OS_OOM_KILLED,
        "The server was ended by SIGKILL from outside and left no error: most often the kernel's OOM killer.",
        _S,
        FAINT,
        True,
    ),
    row(
        r"^(?:\S{1,60}: line \d+: +)?(?:\d+ )?(?:Segmentation fault|Bus error|Aborted|"
        r"Illegal instruction)\b(?: +\(core dumped\))?",
        K.CHILD_DIED,
        "The server crashed in native code.",
        _S,
        FAINT,
        True,
    ),
    row(
        r"^srun: error: .{1,200}: (?:Killed|Out Of Memory)\b",
        K.OS_OOM_KILLED,
        "The server was ended by SIGKILL and left no error: most often the kernel's OOM killer.",
        _S,
        FAINT,
        True,
    ),
    row(
        r"^srun: error: .{1,200}: (?:Segmentation fault|Bus error|Aborted|Exited with exit code [1-9])",
        K.CHILD_DIED,
        "The program around SGLang saw it end; SGLang itself gave no reason.",
        _S,
        FAINT,
        True,
    ),
    row(
        r"exited with code 137\b|code=killed, status=9\b",
        K.OS_OOM_KILLED,
        "The server was ended by SIGKILL and left no error: most often the kernel's OOM killer.",
        _S,
        FAINT,
        True,
    ),
    row(
        r"exited with code (?!0\b)\d|code=(?:dumped|exited|killed), status=(?!0\b|15\b)\d",
        K.CHILD_DIED,
        "The program around SGLang saw it end; SGLang itself gave no reason.",
        _S,
        FAINT,
        True,
    ),
)
