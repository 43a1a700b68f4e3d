"""The part of `lmemo demo` that needs a model: a tiny GPT-2 with random weights, scored and looked into, cold and warm.

    python -m lmemo._demo STORE DOCUMENTS.jsonl TOKENIZER_DIRECTORY

Prints one JSON object: the figures measured, or which packages are missing.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

PROMPTS = 32


def _prompts(documents: str) -> list[str]:
    with open(documents, encoding="utf-8") as lines:
        texts = (json.loads(line)["text"].strip() for line in lines)
        return list(islice((text[:200] for text in texts if len(text) > 80), PROMPTS))


def _tiny_model(vocabulary: int) -> Any:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(1)  # More would only wait for one another in a model so small.
    torch.manual_seed(7)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_positions=256, n_embd=128, n_layer=4, n_head=4)).eval()
    with torch.no_grad():
        model(torch.zeros(1, 8, dtype=torch.long))  # The first pass of a process is slow, and not what is measured.
    return model


def _forward(store_path: str, model: Any, tokenizer: Any, prompts: list[str]) -> tuple[int, float]:
    """Forward passes run, and seconds. The store is opened anew, as another process would."""
    from lmemo import Store
    from lmemo.forward import BackendInstrumentation
    from lmemo.hf import ScoringView

    start = time.perf_counter()
    with Store(store_path) as store, BackendInstrumentation(store=store) as instrumentation:
        view = ScoringView(model, tokenizer, view_id="demo", instrumentation=instrumentation)
        for prompt in prompts:
            view.next_token_dist(prompt, top_k=64)
        store.flush()
        return instrumentation.stats.forward_passes, time.perf_counter() - start


def _activations(store_path: str, model: Any, tokenizer: Any, prompts: list[str]) -> tuple[int, float]:
    """The same for the states of every layer."""
    from lmemo import Store, activations

    passes = 0

    def count(*_: Any) -> None:
        nonlocal passes
        passes += 1

    hook = model.register_forward_pre_hook(count)
    start = time.perf_counter()
    with Store(store_path) as store:
        activations.set_cache_backend(store)
        extractor = activations.ActivationExtractor(
            model, device="cpu", tokenizer=tokenizer, layers="all", batch_size=8, name="tiny-gpt2"
        )
        activations.CachedExtractor(extractor).extract(prompts)
        store.flush()
        seconds = time.perf_counter() - start
        activations.set_cache_backend(None)
    hook.remove()
    return passes, seconds


def main() -> None:
    store_path, documents, tokenizer_path = sys.argv[1:]
    missing = [name for name in ("numpy", "torch", "transformers") if find_spec(name) is None]
    if missing:
        print(json.dumps({"missing": missing}))
        return
    from transformers import PreTrainedTokenizerFast

    file = Path(tokenizer_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(file if file.is_dir() else file.parent)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = _tiny_model(len(tokenizer))
    prompts = _prompts(documents)
    answer: dict[str, Any] = {"model": "a random GPT-2 with 4 layers"}
    for name, run in (("forward", _forward), ("activations", _activations)):
        cold_passes, cold_seconds = run(store_path, model, tokenizer, prompts)
        warm_passes, warm_seconds = run(store_path, model, tokenizer, prompts)
        answer[name] = {
            "asked": len(prompts),
            "cold_passes": cold_passes,
            "warm_passes": warm_passes,
            "cold_seconds": cold_seconds,
            "warm_seconds": warm_seconds,
        }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
