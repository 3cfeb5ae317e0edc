"""The part of the failure table about GPUs: faults, drivers, and kernels compiled on the spot."""

from __future__ import annotations

from tui.sglang.failure_row import CAUSE, Place, Row, row
from tui.sglang.model import FailureKind as K

_S, _T = Place.START, Place.TAIL

_COMPILE = "A GPU kernel could not be compiled on this machine."
_FAULT = "A GPU kernel read or wrote memory that is not its own."

GPU: tuple[Row, ...] = (
    # --- what a graph capture fails of besides memory
    row(
        r"stream is capturing|would make the legacy stream depend on|during CUDA graph capture\. If|"
        r"cudaStreamCapture",
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
    row(r"^\s*what\(\): .{0,200}illegal memory access", K.ILLEGAL_MEMORY_ACCESS, _FAULT, _S, CAUSE - 1, True),
    row(r"^Memory access fault by GPU", K.ILLEGAL_MEMORY_ACCESS, _FAULT, _S | _T, CAUSE, True),
    row(r"aborting with error : HSA_STATUS_ERROR", K.ILLEGAL_MEMORY_ACCESS, _FAULT, _S | _T, CAUSE - 1, True),
    row(
        r"device_gemm|this GEMM problem",
        K.SCHEDULER_EXCEPTION,
        "The installed kernels have none for a matrix of this shape on this GPU.",
    ),
    row(
        r"invalid device context|peer access is not supported",
        K.OTHER,
        "The GPUs cannot reach each other's memory directly; --disable-custom-all-reduce does without.",
    ),
    row(
        r"uncorrectable (?:ECC|NVLink)|ECCUncorrectable|fallen off the bus|GPU is lost|hardware stack error|"
        r"device\(s\) is/are busy|DevicesUnavailable|NVLink error|requires a reset",
        K.OTHER,
        "A GPU is broken, or refuses work: its hardware or driver says so.",
    ),
    row(
        r"Failed to get cubin|cubin.{0,80}(?:download|fetch)",
        K.OTHER,
        "Compiled kernels could not be fetched from the network.",
    ),
    row(r"no kernel image is available", K.OTHER, "The installed kernels were not built for this GPU's architecture."),
    row(
        r"driver version is insufficient|driver on your system is too old|system not yet initialized|"
        r"forward compatibility was attempted|PTX was compiled with an unsupported|Found no NVIDIA driver|"
        r"No CUDA GPUs are available|"
        r"invalid device ordinal|No accelerator \(|not compiled with CUDA|no CUDA-capable device|"
        r"cudaGetDeviceCount|CUDA initialization|CUDA unknown error|CUDA driver error: unknown|"
        r"(?:nvidia|rocm)-smi not found|NVMLError|"
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
    row(  # how Triton quotes the reason below the place
        r"^(?:Assertion|Value|Type|Name|Attribute|Index|NotImplemented)Error\([\"'].*\)$",
        K.KERNEL_COMPILE,
        _COMPILE,
        _T,
        CAUSE + 1,
    ),
    row(
        r"(?i)ninja|error (?:building|compiling objects for) extension|"
        r"\bnvcc\b|\bptxas\b|\bcicc\b|\bhipcc\b|nvrtc(?!\.so)|CUDA_HOME|"
        r"failed to find c compiler|"
        r"^triton\.\S*(?:CompilationError|OutOfResources|CompileTimeAssertion|UnsupportedLanguage)|"
        r"out of resource: shared memory|PassManager::run failed|LLVM ERROR|"
        r"InductorError|SubprocException|^torch\._(?:dynamo|inductor)\.|deep_?gemm\S*/jit|jit/compiler|BackendCompilerFailed|"
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
)
