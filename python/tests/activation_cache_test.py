"""lmemo.activations without a model: settings, saving, loading, discovering, removing, importing."""

from __future__ import annotations

import gc
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from activation_fixtures import fresh_cache, save  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st

import lmemo
from lmemo import _core, activations
from lmemo.activations import ModelIdentity

# --------------------------------------------------------------------------------------------------------------- settings


def test_a_wrong_backend_is_refused() -> None:
    for wrong in (42, 1.5, ["x"], object()):
        with pytest.raises(TypeError, match="Store"):
            activations.set_cache_backend(wrong)  # type: ignore[arg-type]
    for url in ("gs://bucket/x", "ftp://x", "s3://bucket/prefix"):
        with pytest.raises(ValueError, match="Supported are file://"):
            activations.set_cache_backend(url)


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    wanted = tmp_path / "with a space"
    for url in (f"file://{tmp_path}/with%20a%20space", f"FILE://localhost{tmp_path}/with%20a%20space"):
        activations.set_cache_backend(url)
        assert activations.get_cache_dir() == wanted and wanted.is_dir()
    for wrong in ("file://", "file://relative/path", "file://machine/share"):
        with pytest.raises(ValueError, match="expected file:///path"):
            activations.set_cache_backend(wrong)
    assert not Path("relative").exists()


def test_a_limit_is_any_number() -> None:
    for number in (1, 0.5, numpy.float32(0.5), numpy.int64(1)):
        activations.set_cache_limit(number)  # type: ignore[arg-type]
        assert activations.cache_info().cache_limit_bytes == int(float(number) * 2**30)
    for wrong in ("1", "1GiB", [1]):
        with pytest.raises(TypeError, match="a number"):
            activations.set_cache_limit(wrong)  # type: ignore[arg-type]
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="from 0 on"):
            activations.set_cache_limit(wrong)


def test_switching_the_backend_switches_everything(tmp_path: Path) -> None:
    save("p", [0])
    with lmemo.Store(tmp_path / "other") as other:
        activations.set_cache_backend(other)
        assert activations.discover_cached("m", "p") is None and activations.cache_info().models == []
        save("q", [1])
        activations.set_cache_limit(1e-9, enforce="manual")
        activations.evict()
        activations.set_cache_limit(None)
        assert activations.discover_cached("m", "q") is None
        activations.set_cache_backend(f"file://{tmp_path / 'store'}")
    assert activations.discover_cached("m", "p") is not None


def test_wrong_settings_are_refused() -> None:
    for dtype in ("int8", "float64", "half", ""):
        with pytest.raises(ValueError):
            activations.set_cache_dtype(dtype)
    for limit in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError):
            activations.set_cache_limit(limit)
    with pytest.raises(ValueError):
        activations.set_cache_limit(1, enforce="never")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        activations.set_cache_compression("gzip")  # type: ignore[arg-type]


def test_logging_has_one_handler_however_often_it_is_enabled() -> None:
    logger = logging.getLogger("lmemo.activations")
    before = list(logger.handlers)
    for _ in range(3):
        activations.enable_cache_logging(logging.DEBUG)
    assert len(logger.handlers) == len(before) + 1 and logger.level == logging.DEBUG
    logger.handlers[:] = before
    logger.setLevel(logging.NOTSET)


# ------------------------------------------------------------------------------------------------------- saving, loading


def test_raw_states_come_back_layer_by_layer_in_any_order_without_their_padding() -> None:
    states = torch.randn(1, 6, 3 * 8)
    mask = torch.tensor([[0, 1, 1, 0, 1, 0]])
    activations.save_prompt_activations("m", "p", [4, 9, 2], states, mask)
    loaded, its_mask = activations.load_prompt_activations("m", "p", [2, 4])
    assert torch.equal(loaded, torch.cat([states[:, 1:5, 16:], states[:, 1:5, :8]], dim=-1))
    assert its_mask.tolist() == [[1, 1, 0, 1]]
    assert torch.equal(activations.load_prompt_layer("m", "p", 9), states[:, 1:5, 8:16])
    view = activations.view_prompt_layer("m", "p", 9)
    assert numpy.array_equal(view, states[0, 1:5, 8:16].numpy()) and not view.flags.writeable
    with pytest.raises(ValueError):
        view[0, 0] = 1
    # What was loaded is the user's own.
    activations.load_prompt_layer("m", "p", 9).fill_(7)
    assert torch.equal(activations.load_prompt_layer("m", "p", 9), states[:, 1:5, 8:16])
    for missing in ([5], [4, 5]):
        with pytest.raises(FileNotFoundError):
            activations.load_prompt_activations("m", "p", missing)
    with pytest.raises(ValueError):
        activations.save_prompt_activations("m", "p", [1, 2, 3, 4, 5], states, mask)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_layer_comes_without_a_copy_and_is_yours_alone(dtype: str, fresh_cache: Path) -> None:
    activations.set_cache_dtype(dtype)
    states = {layer: save("p", [layer], tokens=50, dim=64).to(getattr(torch, dtype)) for layer in (3, 4, 5)}
    pending = activations.load_prompt_layer("m", "p", 3)  # A copy: not published yet.
    pending.zero_()
    activations.get_backend().flush()
    mine = activations.load_prompt_layer("m", "p", 3)
    assert torch.equal(mine, states[3]) and mine.dtype == states[3].dtype and mine.shape == (1, 50, 64)
    place = mine.data_ptr()
    also_mine = activations.load_prompt_layer("m", "p", 3)  # While the first one lives, another tensor is a copy.
    mine.fill_(7)  # Would end the process if it were the store's own mapping.
    assert torch.equal(also_mine, states[3])
    for layer in (3, 4, 5):  # Neighbours share pages with it.
        assert torch.equal(activations.load_prompt_layer("m", "p", layer), states[layer])
        assert torch.equal(activations.load_prompt_activations("m", "p", [layer])[0], states[layer])
    assert lmemo.Store(fresh_cache).verify().is_clean
    del mine
    again = activations.load_prompt_layer("m", "p", 3)
    assert again.data_ptr() == place and torch.equal(again, states[3])  # The same memory, and nothing is left of what was written.


def test_a_layer_stays_valid_whatever_happens_to_the_store(fresh_cache: Path) -> None:
    states = {layer: save("p", [layer], tokens=40, dim=32) for layer in range(6)}
    activations.get_backend().flush()
    held = {layer: activations.load_prompt_layer("m", "p", layer) for layer in states}
    part = held[2][0, 5:9].numpy()  # Keeps the whole alive.
    del held[2]
    for layer in (0, 1):
        held[layer].mul_(2)
    activations.invalidate_extraction_cache("m", layers=[1, 3, 5])
    activations.get_backend().compact()
    activations.clear_cache()
    activations.set_cache_backend(lmemo.MemoryStore())
    shutil.rmtree(fresh_cache)
    gc.collect()
    for layer, tensor in held.items():
        assert torch.equal(tensor, states[layer] * (2 if layer in (0, 1) else 1))
    assert torch.equal(torch.from_numpy(part), states[2][0, 5:9])


def test_writing_to_layers_takes_no_memory_for_good(fresh_cache: Path) -> None:
    for number in range(40):
        save(f"p{number}", [0], tokens=256, dim=1024)  # 1 MiB each.
    activations.get_backend().flush()

    def own_bytes() -> int:
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return int(status["RssAnon"].split()[0]) << 10

    activations.load_prompt_layer("m", "p0", 0).add_(1)
    before = own_bytes()
    for number in range(40):
        activations.load_prompt_layer("m", f"p{number}", 0).add_(1)
    assert own_bytes() < before + (8 << 20)


def test_a_layer_is_loaded_by_the_settings_as_they_are(tmp_path: Path) -> None:
    """load_prompt_layer is prepared once; every setting prepares it anew."""
    identity = ModelIdentity("m", weights="a")
    mask = torch.ones(1, 2, dtype=torch.int64)
    for dtype in ("float32", "float16", "bfloat16"):
        activations.set_cache_dtype(dtype)
        for model in ("m", identity):
            activations.save_prompt_activations(model, "p", [0], torch.full((1, 2, 4), 1.5 if model is identity else 2.5), mask)
    for dtype in ("float16", "float32", "bfloat16"):
        activations.set_cache_dtype(dtype)
        assert activations.load_prompt_layer("m", "p", 0).dtype == getattr(torch, dtype)
    activations.set_cache_dtype(None)
    assert activations.load_prompt_layer("m", "p", 0).dtype == torch.float32
    for model, value in (("m", 2.5), (identity, 1.5), (ModelIdentity("m", weights="a"), 1.5), (ModelIdentity("m"), 2.5)):
        assert activations.load_prompt_layer(model, prompt="p", layer=0).unique().tolist() == [value]
    store = activations.get_backend()
    before = store.stats().misses
    with pytest.raises(FileNotFoundError, match="layer 1"):
        activations.load_prompt_layer(identity, "p", 1)
    assert store.stats().misses - before == 4  # One for each dtype.
    activations.set_cache_limit(0)
    with pytest.raises(FileNotFoundError):
        activations.load_prompt_layer("m", "p", 0)
    activations.set_cache_limit(None)
    assert activations.load_prompt_layer("m", "p", 0).shape == (1, 2, 4)
    activations.set_cache_backend(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        activations.load_prompt_layer("m", "p", 0)
    activations.set_cache_backend(store)
    assert activations.load_prompt_layer("m", "p", 0).shape == (1, 2, 4)
    for model, prompt, layer in ((7, "p", 0), ("m", b"p", 0), ("m", "p", "0"), ("m", "p", 0.0), (None, "p", 0)):
        with pytest.raises(TypeError):
            activations.load_prompt_layer(model, prompt, layer)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        identity.fields["weights"] = "b"  # type: ignore[index]


def test_one_layer_of_many_prompts() -> None:
    prompts = [f"prompt {number}" for number in range(7)]
    states = [save(prompt, [3], tokens=number + 1) for number, prompt in enumerate(prompts)]
    last = activations.load_layer_last_token("m", prompts, 3)
    assert torch.equal(last, torch.stack([its[0, -1] for its in states]))
    tensors, masks = activations.load_layer_across_prompts("m", prompts, 3)
    assert all(torch.equal(a, b) for a, b in zip(tensors, states, strict=True))
    assert [mask.shape[1] for mask in masks] == list(range(1, 8))
    pooled = activations.load_pooled_batch("m", prompts, [3], "mean", fallback_to_raw=True)
    assert torch.allclose(pooled, torch.stack([its[0].mean(dim=0) for its in states]))
    with pytest.raises(FileNotFoundError, match="7 prompt"):
        activations.load_pooled_batch("m", prompts, [3], "mean")


def test_pooled_router_logits_perplexity() -> None:
    pooled, mask = torch.randn(1, 2 * 8), torch.tensor([[1, 1, 1, 0]])
    activations.save_prompt_pooled_activations("m", "p", [1, 2], pooled, "mean")
    assert torch.equal(activations.load_prompt_pooled_activations("m", "p", [2, 1], "mean"), torch.cat([pooled[:, 8:], pooled[:, :8]], dim=1))
    router = {3: torch.randn(4, 2), 5: torch.randn(4, 6)}
    activations.save_prompt_router_logits("m", "p", router)
    assert all(torch.equal(tensor, router[layer]) for layer, tensor in activations.load_prompt_router_logits("m", "p", [3, 5]).items())
    with pytest.raises(KeyError):
        activations.load_prompt_router_logits("m", "p", [4])

    logits = torch.randn(1, 4, 50)
    activations.save_prompt_logits("m", "p", logits, mask)
    assert torch.equal(activations.load_prompt_logits("m", "p")[0], logits[:, 2:3])
    activations.save_prompt_logits("m", "p", logits, mask, top_k=9, positions="all")
    values, indices = activations.load_prompt_logits("m", "p", top_k=5)
    expected = logits[:, :3].topk(5)
    assert torch.equal(values, expected.values) and torch.equal(indices.long(), expected.indices) and indices.dtype == torch.int32
    with pytest.raises(FileNotFoundError):
        activations.load_prompt_logits("m", "p", top_k=10)
    activations.save_prompt_topk_logits("m", "q", values, indices, mask[:, :3])
    assert activations.load_prompt_logits("m", "q", top_k=5)[0].shape == (1, 1, 5)
    with pytest.raises(ValueError, match="positions"):
        activations.save_prompt_logits("m", "p", logits, mask, positions="first")

    assert not activations.is_prompt_token_perplexity_cached("m", "p")
    activations.save_prompt_perplexity("m", "p", torch.tensor([1.5, 1.0, 2.0]), torch.tensor([1.0, 2.0]), torch.tensor([5, 6, 7]))
    assert activations.load_prompt_perplexity("m", "p").tolist() == [1.5, 1.0, 2.0]
    assert [tensor.tolist() for tensor in activations.load_prompt_token_perplexity("m", "p")] == [[1.0, 2.0], [5, 6, 7]]

    info = activations.discover_cached("m", "p")
    assert info is not None
    assert (info.raw_layers, info.pooled, info.router_layers) == ([], {"mean": [1, 2]}, [3, 5])
    assert (info.has_logits, info.logits_top_k, info.has_perplexity, info.has_token_perplexity, info.num_tokens) == (True, 9, True, True, None)
    assert activations.is_prompt_logits_cached("m", "p", 9) and not activations.is_prompt_logits_cached("m", "p", 10)
    [model] = activations.cache_info("m").models
    assert (model.num_prompts, model.has_pooled, model.has_perplexity, model.has_logits) == (2, True, True, True)


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_is_stored_is_torchs_own_cast_to_the_bit(dtype: str, compression: Any) -> None:
    activations.set_cache_dtype(dtype)
    activations.set_cache_compression(compression)
    bits = torch.cat([torch.randint(-(2**31), 2**31, (4000,), dtype=torch.int64), torch.arange(0, 2**31, 997_001), torch.arange(0x7F7FFF00, 0x7F800100)])
    states = bits.to(torch.int32).view(torch.float32)
    states = states[: states.numel() // 8 * 8].reshape(1, -1, 8)
    activations.save_prompt_activations("m", "p", [0], states, torch.ones(states.shape[:2], dtype=torch.int64))
    loaded = activations.load_prompt_layer("m", "p", 0)
    expected = states.to(getattr(torch, dtype))
    as_bits = torch.int32 if dtype == "float32" else torch.int16
    assert loaded.dtype == expected.dtype
    assert torch.equal(loaded.view(as_bits), expected.contiguous().view(as_bits))
    assert activations.discover_cached("m", "p").dtypes == [dtype]  # type: ignore[union-attr]


def test_conversion_equals_torch_for_every_half_and_many_floats() -> None:
    halves = torch.arange(-(2**15), 2**15, dtype=torch.int16)
    for name in ("float16", "bfloat16"):
        source, target = halves.view(getattr(torch, name)), torch.empty(65536, dtype=torch.float32)
        _core.convert_floats(name, source.data_ptr(), "float32", target.data_ptr(), 65536)
        assert torch.equal(target.view(torch.int32), source.float().view(torch.int32))
    for name, other in (("float16", "bfloat16"), ("bfloat16", "float16")):
        source, target = halves.view(getattr(torch, name)), torch.empty(65536, dtype=getattr(torch, other))
        _core.convert_floats(name, source.data_ptr(), other, target.data_ptr(), 65536)
        assert torch.equal(target.view(torch.int16), source.to(target.dtype).view(torch.int16))
    floats = torch.randint(-(2**31), 2**31, (1 << 20,), dtype=torch.int64).to(torch.int32).view(torch.float32)
    for name in ("float16", "bfloat16"):
        target = torch.empty(1 << 20, dtype=getattr(torch, name))
        _core.convert_floats("float32", floats.data_ptr(), name, target.data_ptr(), 1 << 20)
        assert torch.equal(target.view(torch.int16), floats.to(getattr(torch, name)).view(torch.int16))


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=400), st.integers(0, 200), st.integers(0, 5), st.integers(1, 9))
def test_any_prompt_and_shape_comes_back(prompt: str, layer: int, tokens: int, dim: int) -> None:
    states = torch.randn(1, tokens, dim)
    activations.save_prompt_activations("any", prompt, [layer], states, torch.ones(1, tokens, dtype=torch.int64))
    loaded, mask = activations.load_prompt_activations("any", prompt, [layer])
    assert torch.equal(loaded, states) and mask.shape == (1, tokens)
    info = activations.discover_cached("any", prompt)
    assert info is not None and layer in info.raw_layers and info.num_tokens == tokens


def test_strided_and_half_inputs_are_stored_as_they_are() -> None:
    wide = torch.randn(2, 5, 32, dtype=torch.bfloat16)
    activations.save_prompt_activations("m", "p", [0, 1], wide[1:, ::2, 8:24], torch.ones(1, 3, dtype=torch.int64))
    loaded, _ = activations.load_prompt_activations("m", "p", [0, 1])
    assert loaded.dtype == torch.bfloat16 and torch.equal(loaded, wide[1:, ::2, 8:24])
    view = activations.view_prompt_layer("m", "p", 0)
    assert view.dtype == numpy.uint16 and numpy.array_equal(view.view(numpy.int16), loaded[0, :, :8].contiguous().view(torch.int16).numpy())


# --------------------------------------------------------------------------------------------------- what is there, removing


def test_cache_info_counts_by_model(fresh_cache: Path) -> None:
    for number in range(5):
        save(f"p{number}", [0, 1, 2])
    save("p0", [7], model="other")
    save("p0", [0], model=ModelIdentity("m", weights="abc"))
    activations.set_cache_limit(2.0)
    info = activations.cache_info()
    assert Path(info.cache_dir) == fresh_cache
    assert info.cache_limit_bytes == 2 << 30 and info.total_size_bytes == sum(model.size_bytes for model in info.models) > 0
    assert info.total_size_gb == info.total_size_bytes / 2**30
    assert info.oldest_mtime is not None and info.newest_mtime is not None and info.oldest_mtime <= info.newest_mtime
    assert sorted((model.model_name, model.num_prompts, model.num_layers) for model in info.models) == [("m", 1, 1), ("m", 5, 3), ("other", 1, 1)]
    assert len(activations.cache_info("m").models) == 2 and len(activations.cache_info(ModelIdentity("m", weights="abc")).models) == 1
    assert len({model.model_hash for model in info.models}) == 3
    stats = activations.get_backend().stats()
    assert info.total_size_bytes == stats.kinds["activations"].stored_bytes


def test_invalidation_leaves_nothing_behind() -> None:
    for number in range(4):
        save(f"p{number}", [0, 1, 2])
    save("p0", [0], model="other")
    assert activations.invalidate_extraction_cache("m", ["p1"]) == 4
    assert activations.discover_cached("m", "p1") is None
    assert activations.invalidate_extraction_cache("m", layers=[2]) == 3
    assert activations.discover_cached("m", "p2").raw_layers == [0, 1]  # type: ignore[union-attr]
    assert activations.invalidate_extraction_cache("m", ["p0", "p0"], [0]) == 1
    assert activations.invalidate_extraction_cache("m") > 0
    assert [model.model_name for model in activations.cache_info().models] == ["other"]
    activations.get_backend().put(lmemo.Key.of("tokens", section=1), b"not mine")
    assert activations.clear_cache() == 2
    assert activations.clear_cache() == 0
    assert activations.get_backend().find(lmemo.Key.of("tokens", section=1)) == b"not mine"


def test_explain_names_the_field_that_differs() -> None:
    save("p", [0, 1], model=ModelIdentity("m", revision="a1", dtype="float32"))
    assert "hit" in activations.explain(ModelIdentity("m", revision="a1", dtype="float32"), "p", 1)
    assert "revision changed" in activations.explain(ModelIdentity("m", revision="b2", dtype="float32"), "p", 1)
    assert "layer changed" in activations.explain(ModelIdentity("m", revision="a1", dtype="float32"), "p", 5)


def test_adding_a_layer_writes_only_that_layer(fresh_cache: Path) -> None:
    prompts = [f"prompt {number}" for number in range(200)]
    for prompt in prompts:
        save(prompt, list(range(6)), tokens=8, dim=32)
    before = activations.get_backend().stats().counters["activations"].put_bytes
    for prompt in prompts:
        save(prompt, [6], tokens=8, dim=32)
    written = activations.get_backend().stats().counters["activations"].put_bytes - before
    assert 200 * 8 * 32 * 4 <= written <= 200 * (8 * 32 * 4 + 64)


# ------------------------------------------------------------------------------------------------------------------ files


def test_safetensors_out_and_in(tmp_path: Path) -> None:
    prompts = ["one", "two"]
    for prompt in prompts:
        save(prompt, [0, 3])
    activations.save_prompt_pooled_activations("m", "one", [3], torch.randn(1, 8), "mean")
    activations.save_prompt_perplexity("m", "two", torch.ones(3), torch.ones(2), torch.arange(3))
    activations.save_prompt_logits("m", "two", torch.randn(1, 3, 20), torch.ones(1, 3), top_k=4)
    assert activations.export_safetensors("m", tmp_path / "all.safetensors", prompts) == 12
    before = {prompt: activations.discover_cached("m", prompt) for prompt in prompts}
    states = activations.load_prompt_activations("m", "two", [3, 0])[0]
    activations.set_cache_backend(tmp_path / "second")
    report = activations.import_safetensors("m", tmp_path / "all.safetensors")
    assert (report.prompts, report.tensors) == (2, 12)
    assert {prompt: activations.discover_cached("m", prompt) for prompt in prompts} == before
    assert torch.equal(activations.load_prompt_activations("m", "two", [3, 0])[0], states)


def test_a_cache_of_lmprobe_is_taken_over(tmp_path: Path) -> None:
    """As lmprobe 0.10.3 lays it out."""
    import hashlib

    from safetensors.torch import save_file

    def short(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    folder = tmp_path / "lmprobe" / short("gpt2")
    folder.mkdir(parents=True)
    (folder / "_model_name.txt").write_text("gpt2")
    states, mask = torch.randn(1, 4, 8), torch.ones(1, 4, dtype=torch.int64)
    save_file({"layer_2": states, "attention_mask": mask, "pooled_last_token_layer_2": states[:, -1].clone()}, folder / f"{short('known')}.safetensors")
    save_file({"perplexity": torch.ones(3)}, folder / f"{short('known')}.perplexity.safetensors")
    save_file({"layer_1": states, "attention_mask": mask}, folder / f"{short('given')}.safetensors")
    save_file({"layer_1": states, "attention_mask": mask}, folder / f"{short('nobody knows')}.safetensors")
    (folder / f"{short('broken')}.safetensors").write_bytes(b"\xff" * 100)
    old = folder / short("old")
    (old / "pooled_mean").mkdir(parents=True)
    torch.save(states, old / "layer_5.pt")
    torch.save(mask, old / "attention_mask.pt")
    torch.save(states[:, 0], old / "pooled_mean" / "layer_5.pt")
    entries = [{"hash": short(prompt), "prompt": prompt} for prompt in ("known", "old", "broken")]
    (folder / "_manifest.jsonl").write_text("\n".join([*map(json.dumps, entries), "not json"]))

    report = activations.import_lmprobe(tmp_path / "lmprobe", prompts=["given"])
    assert (report.prompts, report.unknown_prompts, report.unreadable_files) == (4, 1, 1)
    assert torch.equal(activations.load_prompt_layer("gpt2", "known", 2), states)
    info = activations.discover_cached("gpt2", "known")
    assert info is not None and info.pooled == {"last_token": [2]} and info.has_perplexity and info.num_tokens == 4
    assert torch.equal(activations.load_prompt_layer("gpt2", "given", 1), states)
    assert torch.equal(activations.load_prompt_pooled_activations("gpt2", "old", [5], "mean"), states[:, 0])
