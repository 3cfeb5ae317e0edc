"""What to do about a failure, with the numbers at hand. Pure functions.

``advise(kind, line, facts, version)`` gives whole sentences, most useful first. Every number comes from the log or from
the arithmetic of ``memory``. Where the version matters and nobody knows it, the sentence says what is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tui.sglang import memory
from tui.sglang.advice_flags import argument, combination
from tui.sglang.advice_memory import graph, host, os_killed, runtime, static
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import FailureKind
from tui.sglang.short import short

__all__ = ["advise", "short"]

_Adviser = Callable[[str, LogFacts], tuple[str, ...]]

_ADDRESS = re.compile(
    r"\('(?P<host>[^']{0,80})', (?P<port>\d{1,5})\)|(?:port|at)[ :=]+(?P<port2>\d{1,5})|(?:tcp://\S*?|"
    r"addr\S*):(?P<port3>\d{1,5})"
)
_HOLDER = re.compile(r"process\.name\(\)='(?P<name>[^']{1,80})'.{0,800}?pid=(?P<pid>\d+)", re.DOTALL)
# How libraries name what they did not find: quoted, bare, before these words, or within the hub's address of a file.
_MODEL = re.compile(
    r"(?P<before>[^\s']{1,400}) is not a local folder|(?<!\w)'(?P<quoted>[^']{1,400})'|: (?P<bare>/\S{1,400})|"
    r"https?://[^/\s]{1,200}/(?:api/models/)?(?P<url>[\w.-]{1,100}/[\w.-]{1,100})/(?:resolve|tree|raw|revision)/"
)
_NO_MODEL = re.compile(r"https?:|(?:namespace/)?repo_name$|[-_.]+$")  # words of the messages themselves
_LOGIN = re.compile(r"\b[Gg]ated\b|\b40[13] (?:Client|Forbidden|Unauthorized)|Unauthorized|is restricted|logged in")
_MODULE = re.compile(r"No module named '(?P<module>[\w.]+)'")
_LIBRARY = re.compile(r"(?<![\w.+-])(?P<library>[\w.+-]{1,120}?\.so(?:\.[\w.]{1,20})?)\b")


def advise(kind: FailureKind, line: str, facts: LogFacts, version: str | None = None) -> tuple[str, ...]:
    """Advice for a failure of this kind, most useful first; the first sentence has the numbers.

    ``version`` is SGLang's where it is known better than by the log (as the host has it installed)."""
    if version is not None and version != facts.version:
        facts = replace(facts, version=version)
    return _ADVISERS[kind](line[:4_000], facts)


def _port(line: str, facts: LogFacts) -> tuple[str, ...]:
    found = _ADDRESS.search(line)
    port = (found["port"] or found["port2"] or found["port3"]) if found else facts.args.get("port")
    holder = _HOLDER.search(line)
    if holder is not None:
        leftover = ", a leftover of an earlier server" if "sglang" in holder["name"] else ""
        return (
            f"Process {holder['pid']} ({holder['name']}) holds port {port}{leftover}: end it (kill "
            f"{holder['pid']}), or use another port.",
        )
    if not port:
        return ("Another process holds the port: `ss -ltnp` names it. End it, or use another port.",)
    own = port == facts.args.get("port")
    flag = "--port" if own or (found is not None and found["port"]) else "--port, --nccl-port or --dist-init-addr"
    return (
        f"Port {port} is held by another process: `ss -ltnp 'sport = :{port}'` names it. End it, or change {flag}.",
        "SGLang does not end by itself after this; it has to be killed.",
    )


def _model(line: str, facts: LogFacts) -> tuple[str, ...]:
    names = [found[found.lastgroup or 0].rstrip(":") for found in _MODEL.finditer(line)]
    told = [name for name in names if not _NO_MODEL.match(name)]
    local = next((name for name in told if name.startswith("/")), None)
    path = local or facts.args.get("model_path") or next(iter(told), "the model")
    if _LOGIN.search(line):
        return (f"{path} needs a login: set HF_TOKEN to a token that may read it.",)
    if "connect to" in line or "LocalEntryNotFound" in line:
        return (f"This host cannot reach the hub: download {path} first and give --model-path a directory.",)
    if path.startswith(("/", ".", "~")):
        return (
            f"On the host, look at {path}: `ls {path}` must show it, and of a model config.json and the weights "
            "(mounts, spelling, case).",
        )
    return (f"{path} is neither a directory on the host (relative to the working directory) nor a model of the hub.",)


def _import(line: str, facts: LogFacts) -> tuple[str, ...]:
    module, library = _MODULE.search(line), _LIBRARY.search(line)
    if module is not None:
        return (
            f"Install {module['module'].split('.')[0]} into the environment that runs SGLang, at the version "
            "that SGLang asks for.",
        )
    if "undefined symbol" in line and library is not None:
        return (
            f"{library['library']} was built for another torch: reinstall SGLang with its own torch and "
            "kernels in one step.",
        )
    if library is not None:
        return (
            f"{library['library']} is missing: install the CUDA libraries that this build wants, or set "
            "LD_LIBRARY_PATH.",
        )
    return ("Reinstall SGLang with its dependencies in a fresh environment, in one step.",)


def _nccl(line: str, facts: LogFacts) -> tuple[str, ...]:
    ranks = memory.ranks_on_host(facts.args)
    here = f"{ranks} rank{'s' if ranks > 1 else ''} on this host"
    return (
        f"Start once with NCCL_DEBUG=INFO: its last WARN names the reason ({here}).",
        "In a container: --shm-size 16g or more, or --ipc=host. Between GPUs without peer access: NCCL_P2P_DISABLE=1.",
    )


def _nodes(line: str, facts: LogFacts) -> tuple[str, ...]:
    nodes = facts.args.get("nnodes", "1")
    address = facts.args.get("dist_init_addr", "None")
    where = f" All {nodes} nodes must reach {address}." if nodes not in ("1", "None") and address != "None" else ""
    return (
        f"Read the log of the rank or node that went away first.{where}",
        "Several network cards: set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME to the one that the nodes share.",
    )


def _watchdog(line: str, facts: LogFacts) -> tuple[str, ...]:
    found = re.search(r"watchdog_timeout=(\d+)", line)
    limit = int(found[1]) if found else 300
    return (
        f"One step took more than {limit} s. If it only was slow (first compile, very long prompt): "
        f"--watchdog-timeout {limit * 4}.",
        "If a rank hung, look for the rank that printed nothing more, and at `nvidia-smi` and dmesg (Xid) on its host.",
    )


def _fault(line: str, facts: LogFacts) -> tuple[str, ...]:
    backend = facts.args.get("attention_backend", "None")
    other = f" (now {backend})" if backend != "None" else ""
    return (
        f"Try another --attention-backend{other}, or --disable-cuda-graph, to find the kernel; then another "
        "SGLang version.",
        "CUDA_LAUNCH_BLOCKING=1 makes the traceback point at the kernel. `dmesg | grep Xid` tells a broken GPU.",
    )


def _compile(line: str, facts: LogFacts) -> tuple[str, ...]:
    return (
        "The CUDA toolkit (nvcc), the compiler and the installed kernels must fit together: compare `nvcc "
        "--version` with torch's CUDA.",
        "Clear half-built kernels (~/.cache/flashinfer, ~/.cache/tvm-ffi, ~/.triton, ~/.cache/deep_gemm) and "
        "start again.",
    )


def _scheduler(line: str, facts: LogFacts) -> tuple[str, ...]:
    if "alloc_req_slots" in line:
        running = facts.max_running_requests
        now = f" from {running} to {max(1, running // 2)}" if running else ""
        return (f"Lower --max-running-requests{now}.",)
    if "memory leak detected" in line:
        return (
            "A fault of this SGLang version: take the next release, or try --disable-radix-cache or another "
            "--page-size.",
        )
    which = f" of {facts.version}" if facts.version else ""
    return (f"Look this line up among SGLang's issues{which}; the traceback above it names the place.",)


def _died(line: str, facts: LogFacts) -> tuple[str, ...]:
    if re.search(r"Bus error|(?:code|with)[ =:]*-7\b", line):
        return ("Shared memory is full: `df -h /dev/shm`; in a container --shm-size 16g or more, or --ipc=host.",)
    if re.search(r"(?:code|with)[ =:]*-15\b", line):
        return (
            "Somebody ended one process of the server by SIGTERM: end the main process instead, which stops them all.",
        )
    return (
        "Look at the kernel's log on the host: `dmesg -T | grep -iE 'oom|segfault|Xid'`.",
        "A crash in native code points at a kernel or at the storage backend of HiCache: try without it.",
    )


def _other(line: str, facts: LogFacts) -> tuple[str, ...]:
    return _of_words(line) or ("Read the traceback above this line.",)


def silent(line: str) -> tuple[str, ...]:
    """What to do about an end that no error in the log explains; ``line``: its last one."""
    return _of_words(line) or (
        "Its log ends without an error: read its last lines. `df -h` on the host tells whether the disk that holds the "
        "log is full: then what it said last is lost.",
    )


def _of_words(line: str) -> tuple[str, ...]:
    return next(((advice,) for words, advice in _OTHERS if words in line), ())


_OTHERS = (
    ("No space left", "`df -h` names what is full: the model's cache (HF_HOME), /tmp, or /dev/shm (--shm-size)."),
    ("quota", "`quota -s` tells the limit: clear the model's cache, or set HF_HOME to a larger disk."),
    ("open files", "Raise the limit before the start: `ulimit -n 1048576`, or LimitNOFILE= of the unit."),
    ("new thread", "Raise the limit of processes: `ulimit -u`, TasksMax= of the unit, --pids-limit of the container."),
    ("Resource temporarily", "Raise the limit of processes: `ulimit -u`, TasksMax= of the unit, or --pids-limit."),
    ("ermission denied", "See who may read the path (`ls -l`), and as which user the server runs."),
    ("custom code", "Add --trust-remote-code, if you trust the model's own code."),
    ("command not found", "Give the command with its full path, or activate the environment first."),
    (": not found", "Give the command with its full path, or activate the environment first."),
    ("failed to run command", "Give the command with its full path, or activate the environment first."),
    ("docker", "Install the NVIDIA container toolkit, and start the container with --gpus all."),
    ("nvidia-container", "Install the NVIDIA container toolkit, and start the container with --gpus all."),
    ("system not yet initialized", "Start the fabric manager on the host: `systemctl status nvidia-fabricmanager`."),
    ("busy or unavailable", "`nvidia-smi` shows who holds the GPU, and whether its compute mode is exclusive."),
    ("cubin", "Install the kernels beforehand (pip install flashinfer-cubin), or let the host reach that address."),
    ("ECC", "`nvidia-smi -q -d ECC` and `dmesg | grep Xid` name the GPU: take it out of the fleet and reset it."),
    ("NVLink", "`nvidia-smi nvlink -e` and `dmesg | grep Xid` name the link: take the GPU out of the fleet."),
    ("driver on your system", "Upgrade the driver, or install a torch that was built for its CUDA."),
    ("unsupported toolchain", "Upgrade the driver, or install kernels that were built for its CUDA."),
    (
        "unbalanced",
        "`nvidia-smi` shows who holds memory on the fullest GPU: end leftovers of earlier servers, then start again.",
    ),
    ("no kernel image", "Install a build of torch and sgl-kernel for this GPU's architecture."),
    ("does not recognize", "Upgrade transformers, or take an SGLang release that knows this model."),
    ("not supported", "Take an SGLang release that knows this model's architecture."),
    ("model module", "Take an SGLang release that knows this model's architecture."),
    ("SafetensorError", "Download the weights again and compare their sizes or checksums."),
    ("No accelerator", "Check `nvidia-smi` on the host, CUDA_VISIBLE_DEVICES, and --gpus of the container."),
    ("CUDA", "Check `nvidia-smi` on the host, CUDA_VISIBLE_DEVICES, and the driver's version."),
    ("Response [", "Set no_proxy=127.0.0.1,localhost, and see that nothing else listens on the port."),
    ("Proxy", "Set no_proxy=127.0.0.1,localhost, so that the server's own request does not go through the proxy."),
)

_ADVISERS: dict[FailureKind, _Adviser] = {
    FailureKind.OOM_GPU_STATIC: static,
    FailureKind.OOM_GPU_RUNTIME: runtime,
    FailureKind.OOM_CUDA_GRAPH: graph,
    FailureKind.OOM_HOST_HICACHE: host,
    FailureKind.OS_OOM_KILLED: os_killed,
    FailureKind.BAD_ARGUMENT: argument,
    FailureKind.BAD_FLAG_COMBINATION: combination,
    FailureKind.MODEL_NOT_FOUND: _model,
    FailureKind.PORT_IN_USE: _port,
    FailureKind.IMPORT_ERROR: _import,
    FailureKind.NCCL: _nccl,
    FailureKind.WATCHDOG: _watchdog,
    FailureKind.ILLEGAL_MEMORY_ACCESS: _fault,
    FailureKind.SCHEDULER_EXCEPTION: _scheduler,
    FailureKind.CHILD_DIED: _died,
    FailureKind.MULTI_NODE: _nodes,
    FailureKind.KERNEL_COMPILE: _compile,
    FailureKind.OTHER: _other,
}
