"""Import and export for lmemo.activations: safetensors files, and caches that lmprobe made."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _activation_settings as settings
from . import activations as cache


@dataclass
class ImportReport:
    """What an import did. Files whose prompt nobody knows are left alone: pass the prompts to import them too."""

    prompts: int = 0
    tensors: int = 0
    unknown_prompts: int = 0
    unreadable_files: int = 0


def export_safetensors(model_name: str, path: str | os.PathLike[str], prompts: Sequence[str] | None = None) -> int:
    """Writes what is stored of these prompts (None: of all with raw states) to one safetensors file, under the names lmprobe uses: "0.layer_3", "0.attention_mask", …

    The prompts stand in the file's metadata. Returns how many tensors were written.
    """
    from safetensors.torch import save_file

    if prompts is None:
        prompts = [entry.prompt for entry in cache.list_cached_prompts(model_name)]
    tensors: dict[str, Any] = {}
    for number, prompt in enumerate(prompts):
        for name, tensor in _tensors_of(model_name, prompt):
            tensors[f"{number}.{name}"] = tensor.contiguous()
    save_file(tensors, os.fspath(path), metadata={"prompts": json.dumps(list(prompts)), "model": str.__str__(model_name)})
    return len(tensors)


def _tensors_of(model_name: str, prompt: str) -> Iterator[tuple[str, Any]]:
    info = cache.discover_cached(model_name, prompt)
    if info is None:
        return
    for layer in info.raw_layers:
        yield f"layer_{layer}", cache.load_prompt_layer(model_name, prompt, layer)
    mask = cache._find_record(model_name, prompt, "mask", [])
    if mask is not None:
        yield "attention_mask", cache._tensor_of(mask).unsqueeze(0)
    for pooling, layers in info.pooled.items():
        for layer in layers:
            yield f"pooled_{pooling}_layer_{layer}", cache.load_prompt_pooled_activations(model_name, prompt, [layer], pooling)
    for layer, tensor in cache.load_prompt_router_logits(model_name, prompt, info.router_layers).items():
        yield f"router_layer_{layer}", tensor
    if info.has_logits:
        yield "logits", cache.load_prompt_logits(model_name, prompt)[0]
    if info.logits_top_k is not None:
        values, indices = cache.load_prompt_logits(model_name, prompt, info.logits_top_k)
        yield "logits_top_k_values", values
        yield "logits_top_k_indices", indices
    if info.has_perplexity:
        yield "perplexity", cache.load_prompt_perplexity(model_name, prompt)
    if info.has_token_perplexity:
        token_perplexity, ids = cache.load_prompt_token_perplexity(model_name, prompt)
        yield "token_perplexity", token_perplexity
        yield "token_ids", ids


def import_safetensors(model_name: str, path: str | os.PathLike[str]) -> ImportReport:
    """Reads a file that export_safetensors wrote."""
    from safetensors import safe_open

    report = ImportReport()
    with safe_open(os.fspath(path), framework="pt") as file:
        prompts = json.loads((file.metadata() or {}).get("prompts", "[]"))
        names: dict[int, list[str]] = {}
        for name in file.keys():
            number, _, rest = name.partition(".")
            if not number.isdigit() or not rest or int(number) >= len(prompts):
                raise ValueError(f"{os.fspath(path)}: {name!r} belongs to no prompt; expected a file of export_safetensors()")
            names.setdefault(int(number), []).append(rest)
        for number, its_names in names.items():
            tensors = {name: file.get_tensor(f"{number}.{name}") for name in its_names}
            report.tensors += _save(model_name, prompts[number], tensors)
            report.prompts += 1
    settings.get_backend().flush()
    return report


def import_lmprobe(directory: str | os.PathLike[str], prompts: Iterable[str] = ()) -> ImportReport:
    """Takes over a cache directory of lmprobe: safetensors files and the older directories of .pt files.

    A file is named after a hash of its prompt. The prompts are known from the directory's manifest, where it has one, and from `prompts`.
    """
    report = ImportReport()
    given = {_lmprobe_hash(prompt): prompt for prompt in prompts}
    for folder in sorted(Path(directory).iterdir()):
        name_file = folder / "_model_name.txt"
        if not folder.is_dir() or not name_file.is_file():
            continue
        model_name = name_file.read_text().strip()
        known = {**_manifest_of(folder), **given}
        by_prompt: dict[str, list[Path]] = {}
        for path in sorted(folder.iterdir()):
            if path.suffix == ".safetensors" or (path.is_dir() and not path.name.startswith("_")):
                by_prompt.setdefault(path.name.split(".")[0], []).append(path)
        for prompt_hash, paths in by_prompt.items():
            prompt = known.get(prompt_hash)
            if prompt is None:
                report.unknown_prompts += 1
                continue
            tensors: dict[str, Any] = {}
            for path in paths:
                try:
                    tensors.update(_read_folder(path) if path.is_dir() else _read_file(path))
                except Exception as error:
                    report.unreadable_files += 1
                    settings.logger.warning(f"[CACHE] {path} is not imported: {error}")
            report.tensors += _save(model_name, prompt, tensors)
            report.prompts += 1
    settings.get_backend().flush()
    return report


def _lmprobe_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _manifest_of(folder: Path) -> dict[str, str]:
    known = {}
    manifest = folder / "_manifest.jsonl"
    for line in manifest.read_text().splitlines() if manifest.is_file() else []:
        try:
            entry = json.loads(line)
            known[str(entry["hash"])] = str(entry["prompt"])
        except (ValueError, KeyError, TypeError):
            continue
    return known


def _read_file(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(path))


def _read_folder(folder: Path) -> dict[str, Any]:
    import torch

    tensors = {path.stem: torch.load(path, weights_only=True) for path in sorted(folder.glob("*.pt"))}
    for pooled in sorted(folder.glob("pooled_*")):
        for path in sorted(pooled.glob("*.pt")):
            tensors[f"{pooled.name}_{path.stem}"] = torch.load(path, weights_only=True)
    return tensors


def _save(model_name: str, prompt: str, tensors: dict[str, Any]) -> int:
    """Saves tensors by the names of lmprobe. Returns how many were understood."""
    import torch

    saved = 0
    mask = tensors.get("attention_mask")
    router = {}
    for name, tensor in tensors.items():
        if layer := re.fullmatch(r"layer_(\d+)", name):
            its_mask = torch.ones(tensor.shape[:2], dtype=torch.int64) if mask is None else mask
            cache.save_prompt_activations(model_name, prompt, [int(layer.group(1))], tensor, its_mask)
        elif pooled := re.fullmatch(r"pooled_(.+)_layer_(\d+)", name):
            cache.save_prompt_pooled_activations(model_name, prompt, [int(pooled.group(2))], tensor, pooled.group(1))
        elif layer := re.fullmatch(r"router_layer_(\d+)", name):
            router[int(layer.group(1))] = tensor
        elif name == "logits":
            cache._save_record(model_name, prompt, "logits", [tensor], stored=cache._stored_dtype(tensor))
        elif name == "logits_top_k_values" and "logits_top_k_indices" in tensors:
            cache._save_top_k(model_name, prompt, tensor, tensors["logits_top_k_indices"])
        elif name == "perplexity":
            cache.save_prompt_perplexity(model_name, prompt, tensor, tensors.get("token_perplexity"), tensors.get("token_ids"))
        elif name not in ("attention_mask", "logits_top_k_indices", "token_perplexity", "token_ids"):
            continue
        saved += 1
    cache.save_prompt_router_logits(model_name, prompt, router)
    return saved
