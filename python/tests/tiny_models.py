"""A causal language model of a few thousand weights and its tokenizer, made on the spot."""

from __future__ import annotations

from typing import Any

WORDS = "the cat sat on a mat and dog ran to house in of was it blue red sky sun moon is not yes no .".split()


def tiny_tokenizer(*, adds_bos: bool = False) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(["<s>", "</s>", "<unk>", *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    if adds_bos:
        backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>")


def tiny_model(seed: int = 0, *, kind: str = "gpt2", positions: int = 64) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, BloomConfig, GPT2Config, GPTNeoXConfig, LlamaConfig, MistralConfig

    shared = dict(vocab_size=len(WORDS) + 3, bos_token_id=0, eos_token_id=1, initializer_range=0.4)
    layers = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=positions)
    config = {
        "gpt2": lambda: GPT2Config(n_positions=positions, n_embd=32, n_layer=2, n_head=2, **shared),
        "llama": lambda: LlamaConfig(**layers, **shared),
        "neox": lambda: GPTNeoXConfig(**layers, **shared),
        "mistral": lambda: MistralConfig(**layers, num_key_value_heads=1, sliding_window=4, **shared),
        "bloom": lambda: BloomConfig(hidden_size=32, n_layer=2, n_head=2, **shared),
    }[kind]()
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config).eval()
