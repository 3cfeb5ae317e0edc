"""Ways in which SGLang fails, as logs in the wording of its versions: what an expert would say of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.sglang.model import FailureKind as K
from tui.sglang.model import Stage


@dataclass(frozen=True)
class Case:
    """One log; the line that explains it begins with ``>>`` (taken off before it is read)."""

    name: str
    log: str
    kind: K | None
    stage: Stage | None = None
    ready: bool = False
    fatal: bool = True
    args: dict[str, str] = field(default_factory=dict)


P = "[2026-03-01 10:00:00 TP0] "
M = "[2026-03-01 10:00:00] "
HIT = P + "Scheduler hit an exception: Traceback (most recent call last):\n"
SCHED = (
    '  File "/opt/sglang/srt/managers/scheduler.py", line 3190, in run_scheduler_process\n    scheduler = Scheduler(\n'
)
RUN = '  File "/opt/sglang/srt/managers/scheduler.py", line 3190, in run_scheduler_process\n    scheduler.event_loop_overlap()\n'
QUIT = M + "Received sigquit from a child process. It usually means the child failed.\n"
OOM = (
    "CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which "
    "210.00 MiB is "
    "free. Including non-PyTorch memory, this process has 78.90 GiB memory in use."
)


def hit(last: str, frames: str = SCHED, after: str = "") -> str:
    return HIT + frames + ">>" + last + "\n" + after + "\n" + QUIT


def frame(path: str, code: str = "    do()") -> str:
    return f'  File "/opt/sglang/srt/{path}", line 12, in f\n{code}\n'


MAIN = 'Traceback (most recent call last):\n  File "/opt/sglang/launch_server.py", line 14, in <module>\n    run_server(server_args)\n'

CASES = (
    # --- GPU memory
    Case(
        "oom while loading",
        hit(f"torch.OutOfMemoryError: {OOM}", SCHED + frame("model_loader/loader.py")),
        K.OOM_GPU_STATIC,
        Stage.LOADING_WEIGHTS,
    ),
    Case(
        "oom of older torch", hit(f"torch.cuda.OutOfMemoryError: {OOM}", SCHED), K.OOM_GPU_STATIC, Stage.LOADING_WEIGHTS
    ),
    Case("oom while serving", hit(f"torch.OutOfMemoryError: {OOM}", RUN), K.OOM_GPU_RUNTIME, Stage.READY, True),
    Case("oom at warm-up", hit(f"torch.OutOfMemoryError: {OOM}", RUN), K.OOM_GPU_RUNTIME, Stage.WARMUP),
    Case(
        "oom in capture, bare",
        hit(f"torch.OutOfMemoryError: {OOM}", SCHED + frame("model_executor/cuda_graph_runner.py")),
        K.OOM_CUDA_GRAPH,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "capture, draft",
        hit(
            f"Exception: Capture cuda graph failed: {OOM}",
            after="Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n",
        ),
        K.OOM_CUDA_GRAPH,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "capture of prefill",
        hit(f"RuntimeError: Capture prefill CUDA graph failed: {OOM}"),
        K.OOM_CUDA_GRAPH,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "capture, accelerator error",
        hit("Exception: Capture cuda graph failed: CUDA error: out of memory"),
        K.OOM_CUDA_GRAPH,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "capture, unknown reason",
        hit("Exception: Capture cuda graph failed: 'Tensor' object has no attribute 'foo'"),
        K.SCHEDULER_EXCEPTION,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "capture, illegal access",
        hit("Exception: Capture cuda graph failed: CUDA error: an illegal memory access was encountered"),
        K.ILLEGAL_MEMORY_ACCESS,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "static, 0.5.9 wording",
        hit(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: "
            "self.server_args.mem_fraction_static=0.85"
        ),
        K.OOM_GPU_STATIC,
    ),
    Case(
        "static, 0.5.14 wording",
        hit(
            "ValueError: Loaded weights leave no GPU memory for the KV cache under "
            "--mem-fraction-static=0.80. Raise --mem-fraction-static above 0.873 (minimum viable = 1 - "
            "available/pre = 0.8612)."
        ),
        K.OOM_GPU_STATIC,
    ),
    Case(
        "mamba state cache",
        hit(
            "RuntimeError: Hybrid (mamba/linear-attention) state cache is too small to serve any requests. "
            "max_mamba_cache_size=3, mamba_ratio=4, resulting max_num_reqs=0."
        ),
        K.OOM_GPU_STATIC,
    ),
    Case(
        "hybrid gpu memory",
        hit(
            "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
            "max_mamba_cache_size=-4 (total_rest_memory=-1.20 GB, mamba_cache_per_req=50.1 MB). Try: lower"
        ),
        K.OOM_GPU_STATIC,
    ),
    Case(
        "cublas",
        hit("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", RUN),
        K.OOM_GPU_RUNTIME,
        Stage.READY,
        True,
    ),
    Case(
        "hip",
        hit("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB."),
        K.OOM_GPU_STATIC,
        Stage.LOADING_WEIGHTS,
    ),
    Case(
        "retract",
        hit("ValueError: Failed to retract any request. No space left for only one request.", RUN),
        K.OOM_GPU_RUNTIME,
        Stage.READY,
        True,
    ),
    Case(
        "retract 0.5.7",
        hit("ValueError: Out of memory even after retracting all other requests in the decode batch.", RUN),
        K.OOM_GPU_RUNTIME,
        Stage.READY,
        True,
    ),
    # --- host memory
    Case(
        "hicache",
        hit(
            "ValueError: Not enough host memory available. Requesting 150.10 GB but only have 48.20 GB free. "
            "Please reduce the size of the hierarchical cache."
        ),
        K.OOM_HOST_HICACHE,
        Stage.HOST_CACHE,
    ),
    Case(
        "hicache indexer",
        hit(
            "ValueError: Not enough host memory for DSA indexer hierarchical cache. Requesting 35.25 GB but "
            "only have 12.10 GB free."
        ),
        K.OOM_HOST_HICACHE,
        Stage.HOST_CACHE,
    ),
    Case(
        "hicache pinning",
        hit("RuntimeError: cudaHostRegister failed (rc=2, out of memory) at offset=0 size=1073741824"),
        K.OOM_HOST_HICACHE,
        Stage.HOST_CACHE,
    ),
    Case(
        "hicache auto",
        hit(
            "ValueError: No host memory is left for HiCache after the 10 GiB reserve; set --hicache-ratio or "
            "--hicache-size explicitly."
        ),
        K.OOM_HOST_HICACHE,
    ),
    Case(
        "host allocator in hicache",
        hit(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 150000000000 bytes. Error code 12 (Cannot allocate memory)"
        ),
        K.OOM_HOST_HICACHE,
        Stage.HOST_CACHE,
        args={"enable_hierarchical_cache": "True"},
    ),
    # --- killed
    Case(
        "oom killer, init",
        MAIN
        + ">>RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.\n",
        K.OS_OOM_KILLED,
    ),
    Case(
        "oom killer, old wording",
        M
        + "Rank 0 scheduler is dead. Please check if there are relevant logs.\n>>"
        + M
        + "Exit code: -9\n"
        + MAIN
        + "EOFError\n",
        K.OS_OOM_KILLED,
    ),
    Case(
        "minus nine of the others",
        hit("KeyError: 'foo.weight'")
        + M
        + "Rank 0 scheduler is dead. Please check if there are relevant logs.\n"
        + M
        + "Exit code: -9\n"
        + MAIN
        + "EOFError\n",
        K.SCHEDULER_EXCEPTION,
    ),
    Case(
        "minus three only echoes",
        hit("KeyError: 'foo.weight'")
        + MAIN
        + "RuntimeError: Rank 1 scheduler died during initialization (exit code: -3). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.\n",
        K.SCHEDULER_EXCEPTION,
    ),
    Case(
        "killed by the shell",
        P + "Load weight begin. avail mem=78.41 GB\n>>Killed\n",
        K.OS_OOM_KILLED,
        Stage.LOADING_WEIGHTS,
    ),
    Case(
        "killed, bash with line",
        P
        + "Load weight begin. avail mem=78.41 GB\n>>run.sh: line 9:  4711 Killed                  python3 -m sglang.launch_server --model-path /m\n",
        K.OS_OOM_KILLED,
    ),
    Case(
        "kernel says so",
        P
        + "Load weight begin. avail mem=78.41 GB\n>>[98765.4321] Out of memory: Killed process 4242 (sglang::schedul) total-vm:900kB\n",
        K.OS_OOM_KILLED,
    ),
    Case(
        "killed after its own end",
        hit("IndexError: list index out of range", RUN)
        + M
        + "kill_process_tree called: parent_pid=1, include_parent=True, pid=1\nKilled\n",
        K.SCHEDULER_EXCEPTION,
        Stage.READY,
        True,
    ),
    Case(
        "segfault at serving",
        ">>"
        + M
        + "Subprocess scheduler_0 (pid=77) crashed with exit code -11. Triggering SIGQUIT for cleanup...\n"
        + M
        + "SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n",
        K.CHILD_DIED,
        Stage.READY,
        True,
    ),
    Case(
        "abort of nccl",
        ">>[rank3]:[E823 09:11:05.020988021 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE) ran for 600000 milliseconds before timing "
        "out.\nterminate called after throwing an instance of 'c10::DistBackendError'\nFatal Python error: "
        "Aborted\n\nThread 0x00007f (most recent call first):\n  File \"/x/y.py\", line 3 in f\n"
        + QUIT,
        K.NCCL,
    ),
    Case("only the echo", P + "Load weight begin. avail mem=78.41 GB\n>>" + QUIT, K.CHILD_DIED, Stage.LOADING_WEIGHTS),
    Case(
        "watchdog 0.5.7",
        ">>"
        + P
        + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
        + P
        + 'Pyspy dump for PID 171:\nThread 171 (active): "MainThread"\n'
        + QUIT,
        K.WATCHDOG,
        Stage.READY,
        True,
    ),
    Case(
        "soft watchdog",
        P + "Scheduler watchdog timeout (self.watchdog_timeout=60, self.soft=True)\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    # --- command line
    Case(
        "argparse",
        "usage: launch_server.py [-h] --model-path MODEL_PATH\n                        [--watchdog-timeout "
        "WATCHDOG_TIMEOUT]\n>>launch_server.py: error: argument --hicache-size: invalid int value: '0.5'\n",
        K.BAD_ARGUMENT,
    ),
    Case(
        "argparse serve",
        "usage: sglang serve [-h]\n>>sglang serve: error: ambiguous option: --cuda-graph-max-bs could match "
        "--cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill\n",
        K.BAD_ARGUMENT,
    ),
    Case(
        "argparse required",
        "usage: launch_server.py [-h]\n>>launch_server.py: error: the following arguments are required: "
        "--model-path/--model\n",
        K.BAD_ARGUMENT,
    ),
    Case(
        "flags checked in main",
        MAIN
        + frame("server_args.py", "    raise ValueError(")
        + ">>ValueError: The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be used at the same time. Please use only one of them.\n",
        K.BAD_FLAG_COMBINATION,
    ),
    Case(
        "assert in server_args",
        MAIN + frame("server_args.py", "    assert self.tp_size % 2 == 0") + ">>AssertionError: tp_size 3 is odd\n",
        K.BAD_FLAG_COMBINATION,
    ),
    Case(
        "assert in arg_groups",
        MAIN
        + frame("arg_groups/validation_hook.py", "    raise ValueError(")
        + ">>ValueError: Please choose one tokenizer batching approach.\n",
        K.BAD_FLAG_COMBINATION,
    ),
    Case(
        "ratio below one",
        hit("AssertionError: The host memory should be larger than the device memory with the current protocol"),
        K.BAD_FLAG_COMBINATION,
    ),
    Case(
        "layout",
        hit("ValueError: MambaPoolHost only supports layout='page_first_direct', got 'page_first'."),
        K.BAD_FLAG_COMBINATION,
    ),
    Case("hybrid before 0.5.10", hit("ValueError: HiRadixCache only supports MHA and MLA yet"), K.BAD_FLAG_COMBINATION),
    Case("divisible", hit("AssertionError: 12 is not divisible by 8"), K.BAD_FLAG_COMBINATION),
    # --- model
    Case(
        "no config",
        MAIN
        + ">>OSError: /models/x does not appear to have a file named config.json. Checkout 'https://huggingface.co//models/x/tree/main' for available files.\n",
        K.MODEL_NOT_FOUND,
    ),
    Case(
        "gated",
        MAIN
        + "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)\n\nCannot access gated repo for url https://huggingface.co/a/b/resolve/main/config.json.\n\nThe above exception was the direct cause of the following exception:\n\n"
        + MAIN
        + ">>OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/a/b.\n",
        K.MODEL_NOT_FOUND,
    ),
    Case("no weights", hit("RuntimeError: Cannot find any model weights with `/models/x`"), K.MODEL_NOT_FOUND),
    Case(
        "unknown architecture",
        hit(
            "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['A', 'B'])"
        ),
        K.OTHER,
    ),
    # --- ports
    Case(
        "http port",
        M
        + "INFO:     Application startup complete.\n>>"
        + M
        + "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use\n"
        + M
        + "INFO:     Waiting for application shutdown.\n",
        K.PORT_IN_USE,
    ),
    Case("zmq port", hit("zmq.error.ZMQError: Address already in use (addr='tcp://*:32765')"), K.PORT_IN_USE),
    Case(
        "dist port",
        hit(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
            "address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in "
            "use"
        ),
        K.PORT_IN_USE,
    ),
    # --- warm-up
    Case(
        "warm-up behind a proxy",
        M
        + "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)\n"
        + M
        + 'Initialization failed. warmup error: Traceback (most recent call last):\n  File "/opt/sglang/srt/entrypoints/http_server.py", line 800, in _execute_server_warmup\n    assert res.status_code == 200, f"{res=}, {res.text=}"\n>>AssertionError: res=<Response [503]>, res.text=\'squid\'\n\n'
        + M
        + "kill_process_tree called: parent_pid=1, include_parent=True, pid=1\n",
        K.OTHER,
    ),
    Case(
        "warm-up fails of the scheduler",
        hit("IndexError: list index out of range", RUN)
        + M
        + "Initialization failed. warmup error: Traceback (most recent call last):\n  File \"/x/http_server.py\", line 8, in f\n    res = requests.post(\nrequests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected())\n",
        K.SCHEDULER_EXCEPTION,
        Stage.WARMUP,
    ),
    # --- packages and kernels
    Case("no module", MAIN + ">>ModuleNotFoundError: No module named 'sgl_kernel'\n", K.IMPORT_ERROR),
    Case(
        "flashinfer version",
        MAIN
        + ">>Exception: flashinfer_python is installed with version 0.2.3, which is less than the minimum required version 0.2.7. Please reinstall the latest version.\n",
        K.IMPORT_ERROR,
    ),
    Case(
        "no libcuda",
        MAIN + ">>ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n",
        K.IMPORT_ERROR,
    ),
    Case(
        "triton compile",
        hit("triton.compiler.errors.CompilationError: at 12:4:", RUN, "    x = tl.load(p)\n        ^\n"),
        K.KERNEL_COMPILE,
        Stage.WARMUP,
    ),
    Case(
        "triton shared memory",
        hit(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 114688, "
            "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
            RUN,
        ),
        K.KERNEL_COMPILE,
        Stage.WARMUP,
    ),
    Case(
        "inductor",
        hit("torch._inductor.exc.InductorError: CppCompileError: C++ compile error"),
        K.KERNEL_COMPILE,
        Stage.CUDA_GRAPH,
    ),
    Case(
        "nvcc missing",
        hit("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"),
        K.KERNEL_COMPILE,
    ),
    Case(
        "no kernel image",
        hit("torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"),
        K.OTHER,
    ),
    Case("no gpu", MAIN + ">>RuntimeError: No CUDA GPUs are available\n", K.OTHER),
    Case(
        "unbalanced with numbers",
        hit(
            "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
            "pre_model_load_memory=40.1, local_gpu_memory=78.2, local_gpu_memory * 0.9=70.4"
        ),
        K.OTHER,
    ),
    Case(
        "illegal access, accelerator error",
        hit(
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            RUN,
            "CUDA kernel errors might be asynchronously reported at some other API call.\n",
        ),
        K.ILLEGAL_MEMORY_ACCESS,
        Stage.READY,
        True,
    ),
    # --- several ranks
    Case(
        "nccl of others later",
        hit("RuntimeError: Weight shapes differ", SCHED)
        + P.replace("TP0", "TP1")
        + "Scheduler hit an exception: Traceback (most recent call last):\n"
        + SCHED
        + "torch.distributed.DistBackendError: NCCL error in: /pytorch/x.cpp:3356, remote process exited or there was a network error\n",
        K.SCHEDULER_EXCEPTION,
    ),
    Case(
        "peer noise first",
        P.replace("TP0", "TP1")
        + "Scheduler hit an exception: Traceback (most recent call last):\n"
        + SCHED
        + "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4182\n\n"
        + hit(f"torch.OutOfMemoryError: {OOM}", SCHED + frame("model_loader/loader.py")),
        K.OOM_GPU_STATIC,
        Stage.LOADING_WEIGHTS,
    ),
    Case(
        "waiting for nodes",
        hit("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined."),
        K.MULTI_NODE,
        Stage.DIST_INIT,
    ),
    Case(
        "nccl invalid usage",
        hit("RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)"),
        K.NCCL,
        Stage.DIST_INIT,
    ),
    Case(
        "sigquit before the traceback",
        M
        + "SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
        + hit("ValueError: token_to_kv_pool_allocator memory leak detected! available_size=1", RUN, "self.x=2\n"),
        K.SCHEDULER_EXCEPTION,
        Stage.READY,
        True,
    ),
    Case(
        "slip in the handler",
        HIT
        + SCHED
        + ">>KeyError: 'model.layers.0.foo'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
        + SCHED
        + "AttributeError: 'NoneType' object has no attribute 'close'\n"
        + QUIT,
        K.SCHEDULER_EXCEPTION,
    ),
    Case(
        "tokenizer manager",
        M
        + "TokenizerManager hit an exception: Traceback (most recent call last):\n"
        + frame("managers/tokenizer_manager.py")
        + ">>ValueError: Unexpected input\n",
        K.SCHEDULER_EXCEPTION,
        Stage.READY,
        True,
    ),
    Case(
        "0.3.6, prefix on the header",
        P
        + "Traceback (most recent call last):\n"
        + RUN
        + ">>RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n\nKilled\n",
        K.SCHEDULER_EXCEPTION,
        Stage.WARMUP,
    ),
    # --- no failures
    Case(
        "ignored imports",
        P
        + "Ignore import error when loading sglang.srt.models.grok: No module named 'x'\n"
        + P
        + "Ignore import error when loading sglang.srt.models.a. undefined symbol: _ZN\n",
        None,
        fatal=False,
    ),
    Case(
        "old retraction",
        P + "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.5400 -> 0.7300\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    Case("one request's host memory", P + "Not enough host memory for request abc\n", None, Stage.READY, True, False),
    Case(
        "request errors",
        M
        + "[http_server] Error: The input (6002 tokens) is longer than the model's context length (4096 tokens).\n"
        + M
        + 'Error in request: bad\nTraceback (most recent call last):\n  File "/x/serving_base.py", line 72, in f\n    g()\nValueError: bad\n'
        + M
        + "ok\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    Case(
        "asgi",
        M
        + 'ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File "/x/starlette/y.py", line 72, in f\n    g()\nRuntimeError: CUDA out of memory\n',
        None,
        Stage.READY,
        True,
        False,
    ),
    Case(
        "thread of telemetry",
        'Exception in thread Thread-3 (report):\nTraceback (most recent call last):\n  File "/x/y.py", line 72, in f\n    g()\nOSError: no network\n'
        + M
        + "Load weight begin. avail mem=3.00 GB\n",
        None,
        Stage.LOADING_WEIGHTS,
        False,
        False,
    ),
    Case(
        "caught and printed before ready",
        M
        + "INFO:     Waiting for application startup.\nTraceback (most recent call last):\n  File \"/x/y.py\", line 72, in f\n    g()\nModuleNotFoundError: No module named 'openai_harmony'\n"
        + M
        + "INFO:     Application startup complete.\n"
        + M
        + "The server is fired up and ready to roll!\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    Case("fallback", P + "MSCCL++ init failed (CUDA out of memory); falling back to NCCL.\n", None, fatal=False),
    Case(
        "server args",
        M
        + "server_args=ServerArgs(model_path='/m', watchdog_timeout=300, error='Traceback (most recent call last): RuntimeError')\n",
        None,
        fatal=False,
    ),
    Case(
        "a prompt",
        M
        + "Receive: obj=GenerateReqInput(text='Scheduler hit an exception: Traceback (most recent call last): RuntimeError: CUDA out of memory')\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    Case(
        "stopped on request",
        M
        + "SIGTERM received. signum=<Signals.SIGTERM: 15> frame=None. Draining requests and shutting down...\n"
        + M
        + "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].\n"
        + M
        + "kill_process_tree called: parent_pid=1, include_parent=True, pid=1\nrun.sh: line 3: 88 Killed  python -m sglang.launch_server\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    Case("custom handler", M + "Using custom SIGQUIT handler: <function f at 0x7f>\n", None, fatal=False),
    Case(
        "health check",
        M
        + "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 03:12:51. last_heartbeat time: 03:12:41\n",
        None,
        Stage.READY,
        True,
        False,
    ),
    Case(
        "leaks at exit",
        'nanobind: leaked 518 functions!\n - leaked function "create_assert"\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown\n',
        None,
        Stage.READY,
        True,
        False,
    ),
)
