"""What SGLang and the libraries below it say when they fail, as a table.

A row says what the words mean (``kind``, ``explanation``), where they may stand (``places``) and how much they
explain (``weight``): the heaviest clue of a log is its cause, and of equals the earliest. The next SGLang release
is a new row here. Rows are tried in order; the first that matches a text decides. Patterns are searched in text
that is capped, and hold no nested repetition.
"""

from __future__ import annotations

import re

from tui.sglang.death_table import DEATHS
from tui.sglang.failure_row import CAUSE, SYMPTOM, Place, Row, row
from tui.sglang.gpu_table import GPU
from tui.sglang.memory_table import MEMORY
from tui.sglang.model import FailureKind as K
from tui.sglang.network_table import NETWORK

_E, _S, _T, _L = Place.ENDS, Place.START, Place.TAIL, Place.LOOSE

_NO_MODEL = "The model was not found where --model-path points."
_ABI = "A compiled Python package does not fit the others (versions of torch, CUDA or the kernels differ)."
_COMBINATION = "Flags that do not go together, or that this model does not allow."


_ROWS: tuple[Row, ...] = (
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
        r"[Pp]lease (?:re)?install (?!the (?:model|driver))|requires some operators from|"
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
        r"Unable to load vocabulary from file|No tokenizer file found|NotExistError|no file named|"
        r"HTTPSConnectionPool\(host='(?:huggingface|hf-mirror|www\.modelscope)",
        K.MODEL_NOT_FOUND,
        _NO_MODEL,
    ),
    row(
        r"(?:No such file or directory|not found).{0,300}\.(?:pem|crt|cer|key|ya?ml)\b",
        K.OTHER,
        "A file that a flag names was not found.",
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
        r"Cannot find model module|with architecture \S+ is not supported|Unrecognized (?:model|"
        r"configuration class)|has no SGLang implementation",
        K.OTHER,
        "This version of SGLang or Transformers does not know the model's architecture.",
    ),
    row(
        r"JSONDecodeError|is not a valid JSON file|SafetensorError|PytorchStreamReader|"
        r"InvalidHeaderDeserialization|UnpicklingError|HeaderTooLarge",
        K.OTHER,
        "A file of the model is damaged or incomplete.",
    ),
    row(
        r"Config file not found|is not a built-in template|(?i:unknown (?:speculative|quantization|attention|"
        r"grammar|load|reasoning|tool)|"
        r"invalid attention backend|Unsupported kv_cache_dtype|User-specified context_length|Invalid (?:quantization|"
        r"disaggregation_mode|value for))",
        K.BAD_ARGUMENT,
        "A flag has a value that SGLang, or this model, does not know.",
    ),
    row(
        r"(?i:(?:failed|unable) to (?:\w+ ){0,2}(?:mooncake|nixl|hf3fs|3fs|eic|aibrix)|mooncake store server timeout)",
        K.OTHER,
        "The storage under the host cache could not be set up.",
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
        r"requires? (?:setting |enabling |the )?(?:`?--|[Uu]nified|DeepEP|flashinfer|page|tp|dp|ep|radix)|"
        r"must be (?:divisible|dividable|a multiple|the same)|incorrect results for|"
        r"requires (?:SM|compute|CUDA|Hopper|Blackwell|Ampere)|"
        r"does not match the quantization|"
        r"(?:not|n't) divisible by|Unsupported (?:layout|IO backend)|No matching HiCache strategy|"
        r"please (?:use|set|disable|enable|remove) `?--|"
        r"must be (?:set|enabled|disabled|used|specified|provided))",
        K.BAD_FLAG_COMBINATION,
        _COMBINATION,
    ),
)

_GENERAL: tuple[Row, ...] = (
    # --- GPU memory without a more exact wording: the stage tells which kind
    row(
        r"(?:CUDA|HIP|NPU|XPU|MUSA|GPU|MLU)\b.{0,30}(?:out of memory|OutOfMemory)|OutOfMemoryError|"
        r"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|"
        r"RESOURCE_EXHAUSTED|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|out of memory on device",
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

# The order matters: what is exact stands before what is general
ROWS = MEMORY + GPU + NETWORK + _ROWS + _GENERAL + DEATHS
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
