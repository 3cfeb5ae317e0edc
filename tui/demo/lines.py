"""What SGLang prints, as data: for each kind of line, since which version it reads how.

A row ``(since, template)`` holds until the next row; ``None`` means that those versions print no such line.
Versions between the named ones read as the one before them, so any release can be played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Rows = Sequence[tuple[str, str | None]]

DEFAULT_VERSION = "0.5.12"  # the first users' servers ran a release around this one


@lru_cache(maxsize=256)
def version_key(version: str) -> tuple[int, int, int, int]:
    """``"0.5.4.post3"`` → ``(0, 5, 4, 3)``. Raises ``ValueError`` for anything that is no release number."""
    parts = version.split(".")
    post = parts[3].removeprefix("post") if len(parts) == 4 and parts[3].startswith("post") else "0"
    if len(parts) not in (3, 4) or (len(parts) == 4 and not parts[3].startswith("post")):
        raise ValueError(f"no SGLang release: {version!r}")
    major, minor, patch = (int(part) for part in parts[:3])
    return major, minor, patch, int(post)


PROCESS: Mapping[str, Rows] = {
    "entry": (
        (
            "0.5.10",
            "/opt/sglang/lib/python3.11/site-packages/sglang/launch_server.py:54: UserWarning: "
            "'python -m sglang.launch_server' is still supported, but 'sglang serve' is the recommended entrypoint.\n"
            "  Example: sglang serve --model-path <model> [options]\n  warnings.warn(",
        ),
    ),
    "template": (("0.5.3", "Using default HuggingFace chat template with detected content format: openai"),),
    "timings": (
        (
            "0.5.17",
            "Engine startup timings (s): load_weight={weights:.2f}, kv_cache_allocation={pools:.2f}, "
            "scheduler_e2e={total:.2f}, cuda_graph={{prefill=0.00, decode={graphs:.2f}}}, tokenizer_e2e={total:.2f}",
        ),
    ),
    "sigquit_launching": (
        ("0.4.3", "Received sigquit from a child proces. It usually means the child failed."),
        ("0.4.4", "Received sigquit from a child process. It usually means the child failed."),
    ),
    "sigquit_serving": (
        ("0.4.4", "Received sigquit from a child process. It usually means the child failed."),
        ("0.5.3", "SIGQUIT received. signum=None, frame=None. It usually means one child failed."),
    ),
    "sigterm": (("0.3.6", "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."),),
    "draining": (
        ("0.3.6", "Gracefully exiting... remaining number of requests {count}"),
        (
            "0.5.3",
            "Gracefully exiting... Remaining number of requests {count}. Remaining requests remaining_rids={rids}.",
        ),
    ),
    "kill_tree": (("0.5.13", "kill_process_tree called: parent_pid={pid}, include_parent={parent}, pid={pid}"),),
    "child_died": (
        ("0.4.4", "Child process unexpectedly failed with an exit code {code}. pid={pid}"),
        ("0.4.7", "Child process unexpectedly failed with exitcode={code}. pid={pid}"),
        ("0.5.1", None),
        ("0.5.10", "Subprocess {child} (pid={pid}) crashed with exit code {code}. Triggering SIGQUIT for cleanup..."),
    ),
    "crash_diagnostics": (("0.5.20", "Sleeping 5 seconds before crash diagnostics to let GPU activity settle."),),
    "rank_dead": (
        ("0.4.3", "Rank 0 scheduler is dead. Please check if there are relevant logs."),
        ("0.5.10", None),
    ),
    "exit_code": (("0.4.3", "Exit code: {code}"), ("0.5.10", None)),
    "rank_died": (
        (
            "0.5.10",
            "RuntimeError: Rank 0 scheduler died during initialization (exit code: {code}). If exit code is -9 "
            "(SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
        ),
    ),
    "deprecated": (
        (
            "0.5.6",
            "Endpoint '{old}' is deprecated and will be removed in a future version. Please use '{new}' instead.",
        ),
    ),
    "ready": (("0.3.6", "The server is fired up and ready to roll!"),),
}

LOADING: Mapping[str, Rows] = {
    "dist_begin": (("0.3.6", "Init torch distributed begin."), ("0.5.21", "Init parallel begin.")),
    "dist_end": (
        ("0.4.4", "Init torch distributed ends. mem usage={used:.2f} GB"),
        ("0.5.9", "Init torch distributed ends. elapsed={elapsed:.2f} s, mem usage={used:.2f} GB"),
        ("0.5.21", "Init parallel ends. elapsed={elapsed:.2f} s"),
    ),
    "baseline": (("0.5.21", "Memory baseline taken. mem usage={used:.2f} GB"),),
    "import_noise": (
        ("0.3.6", "Ignore import error when loading sglang.srt.models.{module}. No module named '{missing}'"),
        ("0.5.1", "Ignore import error when loading sglang.srt.models.{module}: No module named '{missing}'"),
    ),
    "load_begin": (("0.3.6", "Load weight begin. avail mem={avail:.2f} GB"),),
    "shards": (
        ("0.3.6", "Loading safetensors checkpoint shards"),
        ("0.5.10", "Multi-thread loading shards"),
    ),
    "load_end": (
        ("0.3.6", "Load weight end. type={type}, dtype=torch.bfloat16, avail mem={avail:.2f} GB"),
        (
            "0.4.4",
            "Load weight end. type={type}, dtype=torch.bfloat16, avail mem={avail:.2f} GB, mem usage={used:.2f} GB.",
        ),
        (
            "0.5.9",
            "Load weight end. elapsed={elapsed:.2f} s, type={type}, dtype=torch.bfloat16, "
            "avail mem={avail:.2f} GB, mem usage={used:.2f} GB.",
        ),
        (
            "0.5.10",
            "Load weight end. elapsed={elapsed:.2f} s, type={type}, avail mem={avail:.2f} GB, mem usage={used:.2f} GB.",
        ),
    ),
    "kv_dtype": (("0.5.3", "Using KV cache dtype: torch.bfloat16"), ("0.5.13", None)),
    "linear_attention": (("0.5.3", "Using hybrid linear attention backend for hybrid GDN models."),),
    "graph_begin": (
        ("0.3.6", "Capture {word}cuda graph begin. This can take up to several minutes."),
        ("0.4.4", "Capture {word}cuda graph begin. This can take up to several minutes. avail mem={avail:.2f} GB"),
        (
            "0.5.14",
            "Capture {part} CUDA graph begin. backend=full, num_tokens_per_bs={width}, bs={bs}, "
            "avail mem={avail:.2f} GB",
        ),
        (
            "0.5.16",
            "Capture {part} CUDA graph begin. backend=full, num_tokens_per_req={width}, bs={bs}, "
            "avail mem={avail:.2f} GB",
        ),
        (
            "0.5.22",
            "Capture {part} CUDA graph begin. backend=full, num_tokens_per_req={width}, avail mem={avail:.2f} GB",
        ),
    ),
    "graph_sizes": (("0.4.6.post5", "Capture {word}cuda graph bs {bs}"), ("0.5.14", None)),
    "graph_bar": (("0.3.6", ""), ("0.4.9.post6", "Capturing batches (bs={size} avail_mem={avail:.2f} GB):")),
    "graph_end": (
        ("0.4.1", "Capture {word}cuda graph end. Time elapsed: {elapsed:.2f} s"),
        (
            "0.4.4",
            "Capture {word}cuda graph end. Time elapsed: {elapsed:.2f} s. avail mem={avail:.2f} GB. "
            "mem usage={used:.2f} GB.",
        ),
        (
            "0.4.6.post5",
            "Capture {word}cuda graph end. Time elapsed: {elapsed:.2f} s. mem usage={used:.2f} GB. "
            "avail mem={avail:.2f} GB.",
        ),
        (
            "0.5.14",
            "Capture {part} CUDA graph end. elapsed={elapsed:.2f} s, mem usage={used:.2f} GB, "
            "avail mem={avail:.2f} GB.",
        ),
        (
            "0.5.22",
            "Capture {part} CUDA graph end. bs={bs}, elapsed={elapsed:.2f} s, mem usage={used:.2f} GB, "
            "avail mem={avail:.2f} GB.",
        ),
    ),
    "spec_cap": (
        ("0.5.4", "Max running requests is reset to 48 for speculative decoding."),
        ("0.5.13", None),
    ),
    "summary": (
        (
            "0.3.6",
            "max_total_num_tokens={tokens}, max_prefill_tokens=16384, max_running_requests={running}, "
            "context_len={context}",
        ),
        (
            "0.4.3",
            "max_total_num_tokens={tokens}, chunked_prefill_size={chunk}, max_prefill_tokens=16384, "
            "max_running_requests={running}, context_len={context}",
        ),
        (
            "0.4.7",
            "max_total_num_tokens={tokens}, chunked_prefill_size={chunk}, max_prefill_tokens=16384, "
            "max_running_requests={running}, context_len={context}, available_gpu_mem={avail:.2f} GB",
        ),
    ),
}

POOLS: Mapping[str, Rows] = {
    "kv": (
        ("0.4.3", "KV Cache is allocated. K size: {half:.2f} GB, V size: {half:.2f} GB."),
        ("0.4.4", "KV Cache is allocated. #tokens: {tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB"),
        (
            "0.5.13",
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, "
            "K size: {half:.2f} GB, V size: {half:.2f} GB",
        ),
    ),
    "mamba": (
        ("0.5.2", "Mamba Cache is allocated. conv_state size: {conv:.2f}GB, ssm_state size: {ssm:.2f}GB "),
        (
            "0.5.4",
            "Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: {conv:.2f}GB, "
            "ssm_state size: {ssm:.2f}GB ",
        ),
    ),
    "mamba_draft": (  # follows the line above in the same record when the server speculates
        ("0.5.3", "intermediate_ssm_state_cache size: {ssm:.2f}GB intermediate_conv_window_cache size: {conv:.2f}GB "),
    ),
    "end": (("0.3.6", "Memory pool end. avail mem={avail:.2f} GB"),),
    "host_kv": (
        ("0.4.3", "Allocating {gb:.2f} GB host memory for hierarchical KV cache."),
        ("0.5.17", "Allocating kv hierarchical KV host pool: {tokens} tokens, {gb:.2f} GB host memory."),
    ),
    "host_mamba": (
        ("0.5.10", "Allocating {gb:.2f} GB host memory for hierarchical Mamba cache (layout={layout})."),
        (
            "0.5.23",
            "Allocating {gb:.2f} GB host memory for hierarchical Mamba cache ({slots} state slots, layout={layout}).",
        ),
    ),
    "headroom": (("0.5.22", "HiCache memory headroom: host {free:.1f} GiB, cgroup 8589934590.2 GiB"),),
    "attached": (
        (
            "0.5.11",
            "Attached hybrid Mamba pool stack to HiMambaRadixCache: pools=KV + MAMBA, transfer_layer_num={layers}",
        ),
        ("0.5.18", "Attached hybrid pool stack to UnifiedRadixCache: pools=KV + MAMBA, transfer_layer_num={layers}"),
        ("0.5.21", "Attached hybrid pool stack to UnifiedRadixCache: pools=KV + MAMBA, transfer_layer_id_max={layers}"),
    ),
    "tree": (
        (
            "0.5.13",
            "Tree cache initialized: source=default impl=UnifiedRadixCache hybrid_swa=False hybrid_ssm={hybrid} "
            "hierarchical={hicache} streaming_wrapped=False",
        ),
        (
            "0.5.18",
            "Tree cache initialized: source=default impl=UnifiedRadixCache hybrid_swa=False hybrid_ssm={hybrid} "
            "hicache_attached={hicache} streaming_wrapped=False",
        ),
        (
            "0.5.22",
            "Tree cache initialized: source=default impl=UnifiedRadixCache hybrid_swa=False hybrid_ssm={hybrid} "
            "hicache_attached={hicache}",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one SGLang release speaks and behaves."""

    version: str

    def since(self, version: str) -> bool:
        """Whether this release is ``version`` or newer."""
        return version_key(self.version) >= version_key(version)

    def pick(self, rows: Rows) -> str | None:
        """The row that holds for this release; ``None`` where it says nothing."""
        found = None
        for since, template in rows:
            if self.since(since):
                found = template
        return found

    def say(self, table: Mapping[str, Rows], name: str, **values: object) -> str | None:
        """The line ``name`` of ``table``, filled in; ``None`` where this release prints none."""
        template = self.pick(table[name])
        return None if template is None else template.format(**values)
