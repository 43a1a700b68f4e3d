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
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    vocabulary = len(WORDS) + 3
    if kind == "gpt2":
        return GPT2LMHeadModel(
            GPT2Config(vocab_size=vocabulary, n_positions=positions, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1,
                       initializer_range=0.4)
        ).eval()  # fmt: skip
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=vocabulary, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                    max_position_embeddings=positions, bos_token_id=0, eos_token_id=1, initializer_range=0.4)
    ).eval()  # fmt: skip
