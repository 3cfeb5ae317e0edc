"""The Python environment that has real SGLang for a CPU: built once per set of requirements, outside the checkout.

``python -m tests.real_sglang.environment`` builds it when it is missing and prints its interpreter's path. It lies
under ``$HCS_REAL_SGLANG_ENV``, else under the user's cache folder, in a folder named after what goes into it: a changed
requirement makes a new one, and two checkouts share one. It needs a CPU build of torch, which pip takes where one is
at hand (``PIP_FIND_LINKS``, ``PIP_EXTRA_INDEX_URL``); else it says so before the gigabytes of CUDA are downloaded.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHIM = HERE / "shim"
CONSTRAINTS = HERE / "constraints.txt"
STEPS: tuple[tuple[str, ...], ...] = (
    ("-r", str(HERE / "requirements-cpu.txt"), "-c", str(CONSTRAINTS)),
    # The requirements that these declare bring CUDA builds; what they really need is in the first step.
    ("--no-deps", "-r", str(HERE / "requirements-cpu-nodeps.txt")),
)
MARK = "complete"  # written last: a build that was interrupted is begun anew
CHECK = "import torch, torchvision, sglang, sglang.srt.server_args; print(sglang.__version__, torch.__version__)"


class BuildFailed(Exception):
    """pip or the check of the result failed; the message holds the end of what it printed."""


def folder() -> Path:
    """Where the environment lies, or will lie."""
    base = os.environ.get("HCS_REAL_SGLANG_ENV")
    if not base:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        base = str(Path(cache) / "hcs-tui" / "real-sglang")
    digest = hashlib.sha256(f"{platform.machine()} {sys.version_info[:2]}".encode())
    for path in (HERE / "requirements-cpu.txt", HERE / "requirements-cpu-nodeps.txt", CONSTRAINTS):
        digest.update(path.read_bytes())
    return Path(base) / digest.hexdigest()[:12]


def server_env() -> dict[str, str]:
    """What a process needs in its environment to run SGLang on a CPU, hybrid models with HiCache included."""
    return {
        "PYTHONPATH": str(SHIM),
        "CPU_SHIM_PATCH": "gdn,hicache",
        "SGLANG_USE_CPU_ENGINE": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


def ensure(target: Path) -> Path:
    """The interpreter of the environment in ``target``, built first when it is missing. Raises ``BuildFailed``."""
    python = target / "bin" / "python"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second one waits here for the first one's build
        if not (target / MARK).exists():
            build(target, python)
    return python


def build(target: Path, python: Path) -> None:
    """Make the environment in ``target`` and prove that SGLang can be imported from it."""
    began = time.monotonic()
    say(f"building an environment with real SGLang in {target} (2.5 GB, a few minutes)")
    shutil.rmtree(target, ignore_errors=True)
    run("a virtual environment", [sys.executable, "-m", "venv", str(target)])
    require_cpu_torch(python)
    for step in STEPS:
        run(f"pip install {' '.join(step)}", [str(python), "-m", "pip", "install", "--no-input", "-qq", *step])
    found = run("importing sglang", [str(python), "-c", CHECK], server_env())
    (target / MARK).write_text(found)
    say(f"sglang, torch {found.strip()}: built in {time.monotonic() - began:.0f} s")


def require_cpu_torch(python: Path) -> None:
    """Ask pip which build of torch it would take; nothing but that one file may be fetched for the answer.

    PyPI's builds for x86-64 need CUDA libraries of several gigabytes, and the shim does not fit them.
    """
    pinned = next(
        line for line in (HERE / "requirements-cpu.txt").read_text().splitlines() if line.startswith("torch==")
    )
    ask = ["install", "--dry-run", "--no-deps", "--quiet", "--ignore-installed", "--report", "-", pinned]
    answer = json.loads(run("asking pip for torch", [str(python), "-m", "pip", *ask]))
    needs = answer["install"][0]["metadata"].get("requires_dist", [])
    here = [need for need in needs if "platform_machine" not in need or platform.machine() in need]
    if sys.platform == "linux" and any(need.startswith(("nvidia-", "cuda-")) for need in here):
        raise BuildFailed("pip would take a CUDA build of torch: show it a CPU build (PIP_FIND_LINKS=folder of wheels)")


def run(what: str, command: list[str], extra: Mapping[str, str] | None = None) -> str:
    """The command's standard output. Raises ``BuildFailed`` with the last lines it printed."""
    env = {**os.environ, **(extra or {})}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
        raise BuildFailed(f"{what} failed with status {done.returncode}:\n{end}")
    return done.stdout


def say(text: str) -> None:
    """Narration, to stderr: stdout holds the answer."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(ensure(folder()))
    except BuildFailed as failure:
        sys.exit(f"real SGLang cannot be installed here: {failure}")
