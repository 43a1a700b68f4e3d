"""Reading and writing whole caches, sizes, dtypes and the index. For bench/activations_bench.py."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from activation_peers import (
    MODEL, PEERS, H5, Lmemo, LmProbe, Plain, SafeTensors, TorchSave, median_seconds, ratios, rounds_of, sync, synthetic_states,
)  # fmt: skip

import lmemo
from lmemo import _core, activations


def bytes_written() -> int:
    """By all write calls of this process so far."""
    return int(next(line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar")).split()[1])


def measure(title: str, prompts: list[str], states: list[Any], layers: int, folder: Path, rounds: int) -> dict[str, Any]:
    activations.set_cache_dtype("float16")
    size = sum(its.numel() * 2 for its in states)
    result: dict[str, Any] = {"title": f"{title}, {len(prompts)} prompts, {size / 1e6:.0f} MB"}
    result |= written(prompts, states, layers, folder, 1 if rounds < 9 else 3)
    peers: dict[str, Any] = {}
    for kind in PEERS:
        peers[kind.name] = kind(folder / kind.name, layers)
        peers[kind.name].is_synced = False
        for prompt, its in zip(prompts, states, strict=True):
            peers[kind.name].write(prompt, its)
        peers[kind.name].finish()

    expected = states[0][:, : states[0].shape[1] // layers].to(torch.float16)
    for peer in peers.values():
        assert torch.equal(peer.one(prompts[0], 0).reshape(expected.shape), expected), peer.name

    chosen = prompts[: max(12, min(200, int(2e8 / (size / len(prompts)))))]

    result |= one_layer(peers, chosen, layers, rounds)
    times = rounds_of({name: lambda its=peers[name]: [its.extract(prompt) for prompt in chosen].clear() for name in ("lmemo", "lmprobe")}, rounds, time.thread_time)
    result["extract, all layers stored (µs)"] = {name: statistics.median(its) / len(chosen) * 1e6 for name, its in times.items()}
    result["extract, all layers stored: × of"] = ratios(times)
    result |= first_find(peers["lmemo"], chosen, layers)

    some = slice(0, min(len(prompts), max(12, len(prompts) // 10)))
    some_bytes = sum(its.numel() * 2 for its in states[some])

    def alls(peer: Any) -> Callable[[], None]:
        return lambda: [peer.all(prompt) for prompt in prompts[some]].clear()

    times = rounds_of({name: alls(peer) for name, peer in peers.items()}, rounds, time.thread_time)
    result["all layers (GB/s)"] = {name: some_bytes / statistics.median(its) / 1e9 for name, its in times.items()}
    result["all layers: × of"] = ratios(times)

    def views() -> None:
        for prompt in prompts[some]:
            for layer in range(layers):
                activations.view_prompt_layer(MODEL, prompt, layer)

    result["view of one layer (µs)"] = {"lmemo": median_seconds(views, rounds, time.thread_time) / len(prompts[some]) / layers * 1e6}
    result |= added_layer(peers, prompts, states, layers)
    return result


def one_layer(peers: dict[str, Any], prompts: list[str], layers: int, rounds: int) -> dict[str, Any]:
    repeats = max(5, 600 // len(prompts))  # Enough to forget what the peer before did to the caches.

    def ones(peer: Any) -> Callable[[], None]:
        def again_and_again() -> None:
            for _ in range(repeats):
                for layer, prompt in enumerate(prompts):
                    peer.one(prompt, layer % layers)

        return again_and_again

    times = rounds_of({name: ones(peer) for name, peer in peers.items()}, rounds, time.thread_time)
    return {
        "one layer of one prompt (µs)": {name: statistics.median(its) / len(prompts) / repeats * 1e6 for name, its in times.items()},
        "one layer of one prompt: × of": ratios(times),
    }


def measure_sizes(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """One layer of one prompt, by its size: what maps costs the same for every size, what copies does not."""
    activations.set_cache_dtype("float16")
    results = []
    for tokens, dim in ((32, 2048), (512, 4096), (2048, 4096), (2048, 8192)):
        prompts, states = synthetic_states(6, tokens, dim, 1)
        peers: dict[str, Any] = {}
        for kind in (Lmemo, SafeTensors, LmProbe):
            peers[kind.name] = kind(folder / f"{tokens}-{dim}-{kind.name}", 1)
            peers[kind.name].is_synced = False
            for prompt, its in zip(prompts, states, strict=True):
                peers[kind.name].write(prompt, its)
            peers[kind.name].finish()
        results.append({"title": f"one layer of {dim}, {tokens} tokens: {tokens * dim * 2 / 1e6:.1f} MB"} | one_layer(peers, prompts, 1, rounds))
    return results


def written(prompts: list[str], states: list[Any], layers: int, folder: Path, rounds: int) -> dict[str, Any]:
    """Saving everything into empty caches: until the last save returns, and until it is on the disk."""
    saved: dict[str, list[float]] = {}
    at_end: dict[str, list[float]] = {}
    by_file: dict[str, list[float]] = {}
    each: dict[str, list[float]] = {}
    few = slice(0, min(len(prompts), 100))  # A flush after each takes its time.

    def write_all(peer: Any, some: slice, end: Callable[[], None]) -> tuple[float, float]:
        start = time.perf_counter()
        for prompt, its in zip(prompts[some], states[some], strict=True):
            peer.write(prompt, its)
            end()
        before = time.perf_counter() - start
        finish(peer)
        return before, time.perf_counter() - start

    def finish(peer: Any) -> None:
        peer.finish()
        if not peer.is_synced and not isinstance(peer, (Lmemo, H5, Plain)):
            for path in peer.folder.rglob("*"):
                if path.is_file():
                    sync(path)

    for number in range(rounds):
        for kind in [*PEERS, Plain]:
            has_files = kind in (SafeTensors, TorchSave, LmProbe)
            for way in ("at end", "by file", "each"):
                if way == "by file" and not has_files:
                    continue
                os.sync()
                peer: Any = kind(folder / f"written-{kind.name}-{number}-{way}", layers)
                peer.is_synced = way == "by file" or (way == "each" and has_files)
                if way == "each":
                    _, took = write_all(peer, few, (lambda: None) if has_files else peer.finish)
                    each.setdefault(kind.name, []).append(took)
                else:
                    before, took = write_all(peer, slice(None), lambda: None)
                    (by_file if way == "by file" else at_end).setdefault(kind.name, []).append(took)
                    if way == "at end":
                        saved.setdefault(kind.name, []).append(before)
                shutil.rmtree(peer.folder)
    activations.set_cache_backend(lmemo.MemoryStore())
    synced = at_end | by_file
    result: dict[str, Any] = {}
    for name, seconds, some in (
        ("not synced", saved, slice(None)), ("synced", synced, slice(None)), ("synced at the end", at_end, slice(None)), ("synced after each prompt", each, few),
    ):  # fmt: skip
        size = sum(its.numel() * 2 for its in states[some])
        result[f"write, {name} (MB/s)"] = {who: size / statistics.median(its) / 1e6 for who, its in seconds.items()}
        result[f"write, {name}: × of"] = ratios(seconds)
    result["write, lmemo synced, lmprobe not: × of"] = {"lmprobe": ratios({"lmemo": synced["lmemo"], "lmprobe": saved["lmprobe"]})["lmprobe"]}
    return result


def first_find(peer: Any, prompts: list[str], layers: int) -> dict[str, Any]:
    """One layer of one prompt, each for the first time since the store was opened: its checksum is checked."""
    spent = []
    for _ in range(3):
        activations.set_cache_backend(lmemo.Store(peer.folder / "store", max_bytes=0))
        start = time.thread_time()
        for layer, prompt in enumerate(prompts):
            peer.one(prompt, layer % layers)
        spent.append((time.thread_time() - start) / len(prompts) * 1e6)
    return {"one layer, first time in a process (µs)": {"lmemo": statistics.median(spent)}}


def added_layer(peers: dict[str, Any], prompts: list[str], states: list[Any], layers: int) -> dict[str, Any]:
    """One more layer for every prompt: which bytes are written, and how long it takes."""
    dim = states[0].shape[1] // layers
    wanted = sum(its.shape[0] * dim * 2 for its in states)
    written, rates = {}, {}
    for name, module in (("lmemo", activations), ("lmprobe", peers["lmprobe"].cache)):
        before, start = bytes_written(), time.perf_counter()
        for prompt, its in zip(prompts, states, strict=True):
            module.save_prompt_activations(MODEL, prompt, [layers], its[:, :dim].unsqueeze(0), torch.ones(1, its.shape[0], dtype=torch.int64))
        peers[name].finish()
        rates[name] = wanted / (time.perf_counter() - start) / 1e6
        written[name] = (bytes_written() - before) / wanted
    return {
        "one layer added (bytes written per byte)": written,
        "one layer added (MB/s)": rates,
        "one layer added: × of": {"lmprobe": rates["lmemo"] / rates["lmprobe"]},
    }


def measure_codec(states: list[Any], rounds: int) -> dict[str, Any]:
    floats = torch.randn(1 << 22)
    result: dict[str, Any] = {"title": "codec"}
    for name in ("float16", "bfloat16"):
        target = torch.empty(floats.numel(), dtype=getattr(torch, name))
        times = rounds_of(
            {
                "lmemo": lambda: _core.convert_floats("float32", floats.data_ptr(), name, target.data_ptr(), floats.numel()),  # noqa: B023
                "torch": lambda: target.copy_(floats),  # noqa: B023
            },
            rounds * 4,
            time.thread_time,
        )
        assert torch.equal(target.view(torch.int16), floats.to(target.dtype).view(torch.int16))
        result[f"float32 → {name} (GB/s of input)"] = {who: floats.numel() * 4 / statistics.median(its) / 1e9 for who, its in times.items()}
    for name in ("bfloat16", "float16"):
        plain, small, spent = 0, 0, 0.0
        with tempfile.TemporaryDirectory() as folder:
            activations.set_cache_backend(folder)
            activations.set_cache_dtype(name)
            activations.set_cache_compression("zstd")
            for number, its in enumerate(states):
                activations.save_prompt_activations(MODEL, str(number), [0], its.unsqueeze(0), torch.ones(1, its.shape[0]))
            for number, its in enumerate(states):
                found = activations._find_layers(MODEL, str(number), "raw", "", [0])
                plain, small = plain + its.numel() * 2, small + len(found.hit())
                out = torch.empty(its.shape, dtype=getattr(torch, name))
                start = time.thread_time()
                found.copy_to(0, out.data_ptr(), name)
                spent += time.thread_time() - start
                assert torch.equal(out, its.to(out.dtype))
            activations.set_cache_backend(lmemo.MemoryStore())
        result[f"lossless {name}"] = {"ratio": plain / small, "decode MB/s": plain / spent / 1e6}
    activations.set_cache_compression(None)
    return result


def measure_index(count: int, folder: Path, rounds: int) -> dict[str, Any]:
    activations.set_cache_backend(lmemo.Store(folder / "many", max_bytes=0))
    activations.set_cache_dtype("float16")
    states = torch.randn(1, 2, 3 * 8)
    mask = torch.ones(1, 2, dtype=torch.int64)
    for number in range(count):
        activations.save_prompt_activations(MODEL, f"prompt number {number}", [0, 1, 2], states, mask)
    activations.get_backend().flush()
    first, wall = [], []
    for _ in range(rounds):  # Each time a store that was just opened.
        activations.set_cache_backend(lmemo.Store(folder / "many", max_bytes=0))
        start, wall_start = time.thread_time(), time.perf_counter()
        assert activations.cache_info().models[0].num_prompts == count
        first.append(time.thread_time() - start)
        wall.append(time.perf_counter() - wall_start)
    again = median_seconds(activations.cache_info, 9, time.thread_time)
    prompts = [f"prompt number {number * 37 % count}" for number in range(2000)]
    discover = median_seconds(lambda: [activations.discover_cached(MODEL, prompt) for prompt in prompts], 7, time.thread_time)
    return {
        "title": f"index, {count:,} prompts of 4 entries",
        "cache_info (ms)": {"first": statistics.median(first) * 1e3, "first, wall": statistics.median(wall) * 1e3, "again": again * 1e3},
        "discover_cached (µs)": {"lmemo": discover / len(prompts) * 1e6},
    }
