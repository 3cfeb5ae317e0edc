"""How SGLang's exceptions look in a log: frames (file, line, function, source) as data, and the errors they end in."""

from __future__ import annotations

from tui.demo.lines import Dialect, Rows
from tui.demo.steps import Crash

PACKAGE = "/opt/sglang/lib/python3.11/site-packages/sglang/"
Frame = tuple[str, int, str, str]

_SCHEDULER: tuple[Frame, ...] = (
    ("srt/managers/scheduler.py", 4031, "run_scheduler_process", "scheduler = Scheduler("),
    ("srt/managers/scheduler.py", 412, "__init__", "self.init_model_worker()"),
)
_GPU: tuple[Frame, ...] = (
    _SCHEDULER[0],
    _SCHEDULER[1],
    ("srt/model_executor/model_runner.py", 712, "initialize", "self.init_memory_pool(pre_model_load_memory)"),
    ("srt/model_executor/pool_configurator.py", 53, "profile_max_num_token", "raise RuntimeError("),
)
_HOST: tuple[Frame, ...] = (
    _SCHEDULER[0],
    ("srt/managers/scheduler.py", 447, "__init__", "self.init_cache_with_memory_pool()"),
    ("srt/mem_cache/hi_mamba_radix_cache.py", 131, "__init__", "self.mamba_pool_host = MambaPoolHost("),
    ("srt/mem_cache/memory_pool_host.py", 1238, "__init__", "raise ValueError("),
)
_GPU_ERROR: Rows = (
    ("0.3.6", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
    (
        "0.5.3",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        "Current value: self.server_args.mem_fraction_static={fraction}",
    ),
    (
        "0.5.10",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        "Current value: mem_fraction_static={fraction}",
    ),
)
_HOST_ERROR: Rows = (
    (
        "0.4.3",
        "ValueError: Not enough host memory available. Requesting {wanted:.2f} GB but only have {free:.2f} GB free. "
        "Please reduce the size of the hierarchical cache.",
    ),
)


def gpu_memory(dialect: Dialect, fraction: object) -> Crash:
    """No room for caches beside the weights."""
    return Crash(_GPU, (dialect.pick(_GPU_ERROR) or "").format(fraction=fraction))


def host_memory(dialect: Dialect, wanted: float, free: float) -> Crash:
    """A host pool that does not fit, in decimal GB."""
    return Crash(_HOST, (dialect.pick(_HOST_ERROR) or "").format(wanted=wanted, free=free))


def written(frames: tuple[Frame, ...], error: str) -> str:
    """A traceback as Python prints it, with SGLang's paths."""
    stack = "".join(
        f'  File "{PACKAGE}{file}", line {line}, in {name}\n    {source}\n' for file, line, name, source in frames
    )
    return f"Traceback (most recent call last):\n{stack}{error}\n"


_WAITING: tuple[Frame, ...] = (
    ("launch_server.py", 71, "<module>", "run_server(server_args)"),
    ("srt/entrypoints/http_server.py", 2212, "launch_server", "Engine._launch_subprocesses("),
    ("srt/entrypoints/engine.py", 1315, "_wait_for_scheduler_ready", "data = scheduler_pipe_readers[i].recv()"),
)


def rank_died(error: str | None) -> str:
    """What the main process dies of when a scheduler is gone before it was ready."""
    first = written(_WAITING[2:], "EOFError")
    if error is None:
        return first
    return f"{first}\nDuring handling of the above exception, another exception occurred:\n\n" + written(
        _WAITING, error
    )


WARMUP_FAILED = "Initialization failed. warmup error: " + written(
    (
        (
            "srt/entrypoints/http_server.py",
            1985,
            "_execute_server_warmup",
            'assert res.status_code == 200, f"{res=}, {res.text=}"',
        ),
    ),
    "AssertionError: res=<Response [404]>, res.text='Not Found'",
)
