"""A tiny hybrid model with random weights, made on the spot: three gated-delta-net ("Mamba") layers, one of attention.

``make_tiny_model.py DIR`` writes config, weights (0.5 MB) and a byte-level tokenizer of 512 entries into DIR. It runs
in the environment that has SGLang (torch, transformers, tokenizers), not in the project's own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 512
CONTEXT = 4096
SPECIAL = ["<|pad|>", "<|bos|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
TEXT = [
    "The quick brown fox jumps over the lazy dog.",
    "A server answers many requests at once; a scheduler puts them in batches.",
    "One two three four five six seven eight nine ten eleven twelve.",
    "Hello world, hello again, and good-bye to the world of small models.",
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "full_attention_interval": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": CONTEXT,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}


def make_tokenizer(folder: Path) -> None:
    """Train a byte-level BPE tokenizer on a few lines of text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 4, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[2],
        chat_template=TEMPLATE,
        model_max_length=CONTEXT,
    )
    fast.save_pretrained(folder)


def make_model(folder: Path) -> None:
    """Write the config and weights of a model that was only initialised, always with the same numbers."""
    config = AutoConfig.for_model("qwen3_5_text", **CONFIG)
    config.architectures = ["Qwen3_5ForCausalLM"]
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    # transformers renames some fields when it saves; servers look for the names of published checkpoints.
    path = folder / "config.json"
    saved = json.loads(path.read_text())
    path.write_text(json.dumps({**CONFIG, "rope_theta": 10000.0, "torch_dtype": "bfloat16", **saved}, indent=1))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    make_model(target)
    make_tokenizer(target)
