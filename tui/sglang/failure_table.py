"""What SGLang and the libraries below it say when they fail, as a table.

A row says what the words mean (``kind``, ``explanation``), where they may stand (``places``) and how much they
explain (``weight``): the heaviest clue of a log is its cause, and of equals the earliest. The next SGLang release
is a new row here. Rows are tried in order; the first that matches a text decides. Patterns are searched in text
that is capped, and hold no nested repetition.
"""

from __future__ import annotations

import re

from tui.sglang.death_table import DEATHS
from tui.sglang.failure_row import CAUSE, FAINT, SECONDHAND, SYMPTOM, Place, Row, row
from tui.sglang.model import FailureKind as K

_E, _S, _T, _L = Place.ENDS, Place.START, Place.TAIL, Place.LOOSE

_OOM_KILLER = "The kernel's OOM killer ended a process of the server: the host, or its container, ran out of memory."
HOST_MEMORY = "The host has too little free memory for the hierarchical cache (HiCache)."
_NO_WEIGHTS_ROOM = "After the weights, too little GPU memory is left for the KV cache."
_PORT = "The port is taken by another process."
_NO_MODEL = "The model was not found where --model-path points."
_ABI = "A compiled Python package does not fit the others (versions of torch, CUDA or the kernels differ)."
_COMPILE = "A GPU kernel could not be compiled on this machine."
_PEER = "Another rank or node closed the connection or never answered; its own log holds the reason."
_NCCL = "The GPUs could not talk to each other (NCCL)."
_FAULT = "A GPU kernel read or wrote memory that is not its own."
_POOL_FULL = "The KV cache ran out of room for the running requests."
_COMBINATION = "Flags that do not go together, or that this model does not allow."


_ROWS: tuple[Row, ...] = (
    # --- the operating system
    row(r"(?i)out of memory: killed process", K.OS_OOM_KILLED, _OOM_KILLER, _S | _L, CAUSE + 3, True),
    row(
        r"(?i)\boom-kill:|'oom-kill'|memory cgroup out of memory|\bOOM ?Killed\b|killed by the OOM killer|"
        r"oom_kill event",
        K.OS_OOM_KILLED,
        _OOM_KILLER,
        _S | _L,
        CAUSE + 2,
        True,
    ),
    # --- the command line
    row(
        r"^(?:[\w./ -]{1,60}: error: )(?:unrecognized arguments|argument [-\w/]|"
        r"the following arguments are required|ambiguous option)",
        K.BAD_ARGUMENT,
        "SGLang's command line does not accept these arguments.",
        _S,
        CAUSE,
        True,
    ),
    row(
        r"^(?:\S{0,80}\.py|sglang(?: serve)?|python\S{0,8} -m \S{1,60}): error: \S",
        K.BAD_ARGUMENT,
        "SGLang refuses its command line.",
        _S,
        CAUSE,
        True,
    ),
    # --- host memory
    row(r"Not enough host memory (?:available|for (?!request))", K.OOM_HOST_HICACHE, HOST_MEMORY),
    row(r"No host memory is left for HiCache|Cannot automatically size HiCache", K.OOM_HOST_HICACHE, HOST_MEMORY),
    row(
        r"cudaHostRegister failed|hipHostRegister failed|Pinned host memory allocation|"
        r"cudaHostAlloc\w* (?:failed|error)",
        K.OOM_HOST_HICACHE,
        "The host memory for HiCache could not be pinned: too little memory, a low `ulimit -l`, or a container limit.",
    ),
    row(
        r"DefaultCPUAllocator: (?:can't|not enough)|\[Errno 12\]|^MemoryError|Cannot allocate memory|std::bad_alloc",
        K.OOM_HOST_HICACHE,
        "The host ran out of memory.",
    ),
    # --- device memory: static
    row(r"Not enough memory\. Please try", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(r"Loaded weights leave no GPU memory", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(
        r"Not enough GPU memory for hybrid|state cache is too small to serve",
        K.OOM_GPU_STATIC,
        "Too little GPU memory is left for the Mamba states.",
    ),
    row(r"mem_fraction_static.{0,80}(?:too (?:small|low)|increase)", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(r"No available memory for (?:the )?(?:cache|KV)", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(
        r"Memory pool size is too small|max_running_request(?:s)? is zero",
        K.OOM_GPU_STATIC,
        "After the weights, the GPU memory that is left for the KV cache holds not even one request.",
    ),
    # --- device memory: at run time
    row(
        r"alloc_req_slots runs out of memory",
        K.SCHEDULER_EXCEPTION,
        "The scheduler ran out of request slots; no GPU memory is missing.",
    ),
    row(r"(?:Prefill|Decode) out of memory\.", K.OOM_GPU_RUNTIME, _POOL_FULL),
    row(
        r"Failed to retract any|Out of memory even after retracting|No space left for only one",
        K.OOM_GPU_RUNTIME,
        _POOL_FULL,
    ),
    row(
        r"(?i)mem(?:ory)? leak detected",
        K.SCHEDULER_EXCEPTION,
        "SGLang's self-check found cache slots that nobody owns: a fault in its accounting, not a lack of memory.",
    ),
    # --- what a graph capture fails of besides memory
    row(
        r"operation not permitted when stream is capturing|would make the legacy stream depend on",
        K.BAD_FLAG_COMBINATION,
        "A step that cannot be recorded ran while CUDA graphs were captured: two features that do not go together.",
    ),
    # --- GPU faults
    row(
        r"illegal memory access|misaligned address|an illegal instruction|unspecified launch failure|"
        r"invalid __global__|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS",
        K.ILLEGAL_MEMORY_ACCESS,
        _FAULT,
    ),
    row(r"^Memory access fault by GPU", K.ILLEGAL_MEMORY_ACCESS, _FAULT, _S | _T, CAUSE, True),
    row(
        r"uncorrectable (?:ECC|NVLink)|ECCUncorrectable|fallen off the bus|GPU is lost|hardware stack error|"
        r"device\(s\) is/are busy|DevicesUnavailable|NVLink error|requires a reset",
        K.OTHER,
        "A GPU is broken, or refuses work: its hardware or driver says so.",
    ),
    row(r"no kernel image is available", K.OTHER, "The installed kernels were not built for this GPU's architecture."),
    row(
        r"driver version is insufficient|driver on your system is too old|system not yet initialized|"
        r"forward compatibility was attempted|Found no NVIDIA driver|No CUDA GPUs are available|"
        r"invalid device ordinal|No accelerator \(|not compiled with CUDA|no CUDA-capable device|"
        r"cudaGetDeviceCount|CUDA initialization|CUDA unknown error|(?:nvidia|rocm)-smi not found|NVMLError|"
        r"invalid device function",
        K.OTHER,
        "No usable GPU is visible to the server (driver, CUDA_VISIBLE_DEVICES, container without GPUs).",
    ),
    row(
        r"memory capacity is unbalanced",
        K.OTHER,
        "One GPU has much less free memory than the others: another process, often a leftover server, holds it.",
    ),
    row(
        r"^\[rank\d+\]:\[E.{0,300}(?:illegal memory access|unspecified launch failure)",
        K.ILLEGAL_MEMORY_ACCESS,
        _FAULT,
        _S,
        CAUSE - 1,
        True,
    ),
    row(
        r"device-side assert triggered",
        K.SCHEDULER_EXCEPTION,
        "A check inside a GPU kernel failed (an index out of range).",
    ),
    # --- kernels compiled on the spot
    row(
        r"\(\d+\): (?:fatal )?error\b|:\d+:\d+: (?:fatal )?error:|^ptxas (?:fatal|error)|^nvcc (?:fatal|"
        r"error)|^/\S+: fatal error|^collect2: error|^\S{1,200}\bld: cannot find",
        K.KERNEL_COMPILE,
        _COMPILE,
        _T,
        CAUSE + 1,
    ),
    row(
        r"(?i)ninja|error building extension|\bnvcc\b|\bptxas\b|\bcicc\b|\bhipcc\b|nvrtc|CUDA_HOME|"
        r"failed to find c compiler|"
        r"^triton\.\S*(?:CompilationError|OutOfResources|CompileTimeAssertion|UnsupportedLanguage)|"
        r"out of resource: shared memory|PassManager::run failed|LLVM ERROR|"
        r"InductorError|^torch\._(?:dynamo|inductor)\.|deep_?gemm\S*/jit|jit/compiler|BackendCompilerFailed|"
        r"CppCompileError|jit compil|compilation (?:failed|error)|"
        r"failed to compile",
        K.KERNEL_COMPILE,
        _COMPILE,
    ),
    row(
        r"CalledProcessError: Command .{0,200}\b(?:gcc|g\+\+|cc|clang|make|cmake|nvcc|ninja)\b",
        K.KERNEL_COMPILE,
        _COMPILE,
    ),
    # --- ports
    row(r"(?i)address already in use|EADDRINUSE|\[Errno 98\]", K.PORT_IN_USE, _PORT, _E | _T),
    row(r"Failed to bind to address", K.PORT_IN_USE, _PORT),
    row(
        r"is not available in \d+ seconds|(?i:port \S+ is (?:already )?(?:in use|taken))|Port is already in use",
        K.PORT_IN_USE,
        _PORT,
    ),
    row(r"^ERROR: +\[Errno 98\]", K.PORT_IN_USE, _PORT, _S, CAUSE, True),
    row(
        r"^ERROR: +\[Errno \d+\] error while attempting to bind",
        K.OTHER,
        "The server cannot listen on its address.",
        _S,
        CAUSE,
        True,
    ),
    row(
        r"^(?:Port is already in use\. dist_init_port|engine_info_bootstrap_port \d+ is already in use)",
        K.PORT_IN_USE,
        _PORT,
        _S,
        CAUSE,
    ),
    # --- other ranks and nodes (before NCCL: its errors wrap these)
    row(
        r"(?i)gloo.{0,160}(?:closed by peer|timed out|connectFullMesh|refused|reset|no route|no error|"
        r"unreachable)|connectFullMesh|gloo/transport",
        K.MULTI_NODE,
        _PEER,
        weight=SECONDHAND,
    ),
    row(
        r"(?i)TCPStore|DistStoreError|DistNetworkError|client socket has (?:failed|timed out)|waiting for clients|"
        r"remote process (?:exited|has exited)|ncclRemoteError|connection closed by (?:remote )?peer|"
        r"^\S*EngineDead|rendezvous|"
        r"gaierror|No route to host|ifa != nullptr|Unable to find address for|other ranks that didn't finish|"
        r"Failed to receive worker ports",
        K.MULTI_NODE,
        _PEER,
        weight=SECONDHAND,
    ),
    row(
        r"^\[rank\d+\]:\[[EWF]\d+ .{0,60}ProcessGroup\w+\.cpp:\d+\].{0,120}(?:TCPStore|connectFullMesh|"
        r"closed by peer)",
        K.MULTI_NODE,
        _PEER,
        _S,
        FAINT,
        True,
    ),
    row(
        r"(?i)nccl (?:error|internal|communicator)|nccl\w*Error|DistBackendError|\brccl\b|hccl|"
        r"Watchdog caught collective operation timeout",
        K.NCCL,
        _NCCL,
        weight=SECONDHAND,
    ),
    row(
        r"^\[rank\d+\]:\[[EF].{0,120}(?:Watchdog caught collective operation timeout|watchdog got stuck|"
        r"NCCL (?:error|watchdog))",
        K.NCCL,
        _NCCL,
        _S,
        SYMPTOM + 3,
    ),
    row(
        r"^terminate called after throwing an instance of 'c10::DistBackendError'", K.NCCL, _NCCL, _S, SYMPTOM + 1, True
    ),
    # --- packages
    row(
        r"undefined symbol|cannot open shared object file|GLIBCXX_|CXXABI_|version `GLIBC|"
        r"size changed, may indicate binary|operator \w+::\w+ does not exist",
        K.IMPORT_ERROR,
        _ABI,
        _E | _T,
        CAUSE,
    ),
    row(
        r"^(?:\w+\.)*(?:ImportError|ModuleNotFoundError|PackageNotFoundError)\b",
        K.IMPORT_ERROR,
        "A Python package is missing or cannot be loaded.",
    ),
    row(
        r"minimum required version|is not installed\b|'_OpNamespace' '\w+' object has no attribute|"
        r"module '(?:sgl_kernel|flashinfer|torch|transformers|triton|deep_gemm|vllm)\S*' has no attribute",
        K.IMPORT_ERROR,
        "An installed package does not fit this SGLang.",
    ),
    # --- the host: files, limits (before the model: a full disk is no missing file)
    row(
        r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]",
        K.OTHER,
        "A disk of the host is full (or /dev/shm, or the container's own).",
    ),
    row(
        r"Too many open files|can't start new thread|Resource temporarily unavailable|\[Errno (?:11|24)\]",
        K.OTHER,
        "A limit of the host on files or processes is too low (`ulimit -n`, `ulimit -u`, the container's pids).",
    ),
    row(
        r"Permission ?[Dd]enied|Read-only file system|\[Errno (?:1|13|30)\]",
        K.OTHER,
        "The server may not read or write a file that it needs.",
    ),
    row(
        r"Stale file handle|Input/output error|Transport endpoint is not connected|\[Errno (?:5|107|116)\]",
        K.OTHER,
        "The storage under the model, or under the cache, does not answer.",
    ),
    # --- the model
    row(
        r"Incorrect path_or_model_id|Repo id must be in the form|HFValidationError|RepositoryNotFoundError|"
        r"GatedRepo|[Gg]ated repo|"
        r"does not appear to have (?:a file named|files named)|is not a valid model identifier|"
        r"couldn't connect to 'https?://\S*(?:huggingface|hf)|"
        r"(?:401|403|404) Client Error|LocalEntryNotFoundError|EntryNotFoundError|RevisionNotFoundError|"
        r"Cannot find any model weights|"
        r"Can't load (?:tokenizer|the (?:configuration|model|tokenizer|config))|"
        r"Unable to load vocabulary from file|NotExistError|no file named|"
        r"HTTPSConnectionPool\(host='(?:huggingface|hf-mirror|www\.modelscope)",
        K.MODEL_NOT_FOUND,
        _NO_MODEL,
    ),
    row(
        r"^FileNotFoundError|^NotADirectoryError|No such file or directory.{0,200}(?:config\.json|safetensors|"
        r"tokenizer|model)",
        K.MODEL_NOT_FOUND,
        "A file of the model was not found.",
    ),
    row(
        r"Transformers does not recognize this architecture|Model architectures .{0,200} (?:are not supported|"
        r"failed to be inspected)|"
        r"Cannot find model module|Unrecognized (?:model|configuration class)|has no SGLang implementation",
        K.OTHER,
        "This version of SGLang or Transformers does not know the model's architecture.",
    ),
    row(
        r"SafetensorError|PytorchStreamReader|InvalidHeaderDeserialization|UnpicklingError|HeaderTooLarge",
        K.OTHER,
        "A weight file is damaged or incomplete.",
    ),
    row(
        r"Config file not found|(?i:unknown (?:speculative|quantization|attention|grammar|load|reasoning|tool)|"
        r"invalid attention backend|Unsupported kv_cache_dtype|User-specified context_length|Invalid (?:quantization|"
        r"disaggregation_mode|value for))",
        K.BAD_ARGUMENT,
        "A flag has a value that SGLang, or this model, does not know.",
    ),
    # --- flags that do not go together (4.3 of the facts: HiCache, Mamba, speculation)
    row(
        r"host memory should be larger than the device memory",
        K.BAD_FLAG_COMBINATION,
        "This SGLang wants a host cache that is larger than the device cache.",
    ),
    row(
        r"^(?:\w+\.)*(?:ValueError|AssertionError|NotImplementedError|RuntimeError|Exception): .{0,300}?"
        r"(?:mutually exclusive|(?:in|not (?:yet )?)compatible|cannot be (?:used|enabled|combined|set)|"
        r"only supports? |"
        r"(?:does|do|is|are) ?(?:not|n't) (?:yet |currently )?support|currently (?:does )?not support|"
        r"not supported (?:together )?(?:with|by|for|when|yet)|"
        r"requires? (?:setting |enabling |the )?(?:`?--|unified|DeepEP|flashinfer|page|tp|dp|ep|radix)|"
        r"must be (?:divisible|a multiple)|requires (?:SM|compute|CUDA|Hopper|Blackwell|Ampere)|"
        r"does not match the quantization|"
        r"(?:not|n't) divisible by|Unsupported (?:layout|IO backend)|No matching HiCache strategy|"
        r"please (?:use|set|disable|enable|remove) `?--|"
        r"must be (?:set|enabled|disabled|used|specified|provided))",
        K.BAD_FLAG_COMBINATION,
        _COMBINATION,
    ),
    # --- GPU memory without a more exact wording: the stage tells which kind
    row(
        r"(?:CUDA|HIP|NPU|XPU|MUSA|GPU|MLU)\b.{0,30}(?:out of memory|OutOfMemory)|OutOfMemoryError|"
        r"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|"
        r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|out of memory on device",
        None,
        "A GPU ran out of memory.",
        _E | _T | _L,
    ),
    row(
        r"CUresult error +result=2\b",
        K.OOM_GPU_STATIC,
        "A GPU ran out of memory (CUDA result 2) while memory was reserved.",
        _S,
        SYMPTOM,
    ),
    row(r"(?i)\bout of memory\b", None, "The server ran out of memory."),
)

ROWS = _ROWS + DEATHS
EXCEPTIONS = tuple(each for each in ROWS if each.places & Place.ENDS)
STARTS = tuple(each for each in ROWS if each.places & Place.START)
TAILS = tuple(each for each in ROWS if each.places & Place.TAIL)
LOOSE = tuple(each for each in ROWS if each.places & Place.LOOSE)

GRAPH_OUT_OF_MEMORY = "A GPU ran out of memory while CUDA graphs were captured."
UNEXPLAINED = "The scheduler stopped at an error that SGLang does not explain further."
UNEXPLAINED_MAIN = "The server stopped at an error before it had started."
WARMUP = (
    "The server's own first request failed, so it ended itself. "
    "A proxy (http_proxy) or a foreign server on the port can do this."
)


# Exceptions that other ranks, pipes and the interpreter raise when something else has gone wrong.
NOISE = re.compile(
    r"^(?:\w+\.)*(?:EOFError|BrokenPipeError|ConnectionResetError|KeyboardInterrupt|SystemExit|CancelledError|"
    r"ProcessLookupError|ConnectionRefusedError|InvalidStateError|ClientDisconnect|EndOfStream|WouldBlock)\b|"
    r"^RuntimeError: Initialization failed\. Please see"
)

# Errors of the code that handles an error: the first exception of the chain is then the cause.
CLUMSY = re.compile(r"^(?:AttributeError|NameError|UnboundLocalError|TypeError|KeyError|IndexError|AssertionError: *$)")
