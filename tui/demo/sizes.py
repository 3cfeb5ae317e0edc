"""How large a model's caches are: the arithmetic of SGLang's pools, so that every figure printed follows from flags."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30
GB = 10**9


@dataclass(frozen=True, slots=True)
class Model:
    """One model as its memory sees it. Sizes in bytes on one rank; a state slot holds one request's Mamba state."""

    type: str
    draft_type: str
    layers: int
    weights: int
    draft_weights: int
    kv_per_token: int
    draft_kv_per_token: int
    conv_per_slot: int
    ssm_per_slot: int
    context: int

    @property
    def slot(self) -> int:
        return self.conv_per_slot + self.ssm_per_slot


# 64 layers: 16 of full attention (4 KV heads of 256, bf16) and 48 of gated delta net
# (48 value and 16 key heads of 128, float32 state, convolution of width 4 in bf16).
QWEN = Model(
    type="Qwen3_5ForConditionalGeneration",
    draft_type="Qwen3_5ForCausalLMMTP",
    layers=64,
    weights=int(51.17 * GIB),
    draft_weights=int(2.31 * GIB),
    kv_per_token=16 * 4 * 256 * 2 * 2,
    draft_kv_per_token=4 * 256 * 2 * 2,
    conv_per_slot=48 * (2 * 16 + 48) * 128 * 3 * 2,
    ssm_per_slot=48 * 48 * 128 * 128 * 4,
    context=262_144,
)
GPU_BYTES = int(94.97 * GIB)  # what a process finds free on an empty GPU
CARD_MIB, CONTEXT_MIB = 97_887, 610  # the GPU's memory as its driver tells it, and what a CUDA context takes of it
DIST_BYTES = int(0.42 * GIB)
RESERVE = 10 * GIB  # SGLang leaves this much host memory alone


def host_tokens(size: int, model: Model) -> int:
    """How many tokens a KV host pool of ``size`` bytes holds: one page more than fits, as since 0.5.6."""
    return size // model.kv_per_token + 1


def host_slots(size: int, model: Model) -> int:
    """How many Mamba state slots a host pool of ``size`` bytes holds, rounded up likewise."""
    return size // model.slot + 1
