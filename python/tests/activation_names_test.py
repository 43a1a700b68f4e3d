"""What users of lmprobe's cache know by name, and a cache that lmprobe itself wrote."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from activation_fixtures import fresh_cache, save  # noqa: F401
from activation_models import extractor_of, prompts_of, twelve_layers

import lmemo
from lmemo import activations
from lmemo.activations import CachedExtractor, ModelIdentity


def entries() -> list[dict[str, Any]]:
    """Every entry of the store, by a scan: nothing that is left behind can hide."""
    return [dict(entry.key.fields) for entry in activations.get_backend().scan() if entry.key is not None]


def test_functions_take_the_arguments_that_users_give_them() -> None:
    from lmprobe import cache as lmprobe_cache

    names = [name for name in activations.__all__ if inspect.isfunction(getattr(lmprobe_cache, name, None))]
    assert len(names) > 20
    for name in names:
        if name == "invalidate_extraction_cache":  # There it takes the directory of one prompt, which does not exist here.
            continue
        theirs, ours = (inspect.signature(getattr(module, name)).parameters for module in (lmprobe_cache, activations))
        assert list(ours)[: len(theirs)] == list(theirs), name
        for parameter in theirs.values():
            assert ours[parameter.name].default == parameter.default, f"{name}: {parameter}"
    for name in ("CachedPromptInfo", "CacheInfo", "ModelCacheInfo"):
        theirs, ours = (getattr(module, name).__dataclass_fields__ for module in (lmprobe_cache, activations))
        assert list(ours)[: len(theirs)] == list(theirs), name
    theirs, ours = (inspect.signature(module.CachedExtractor.extract).parameters for module in (lmprobe_cache, activations))
    assert list(ours) == list(theirs)


def test_prompts_are_listed_in_the_order_they_were_stored(tmp_path: Path) -> None:
    """Long ones too, of which the keys have only a digest; by a bare name those of every identity."""
    long, odd = "lång \U0001f600 " * 100, "a\ud800b" * 100
    identity = ModelIdentity("m", weights="a")
    for prompt, tokens, model in (("b", 2, "m"), (long, 5, "m"), ("a", 3, identity), (odd, 4, "m"), ("other", 1, "n")):
        save(prompt, [0], tokens=tokens, model=model)
        activations.get_backend().flush()
    save(long, [1], tokens=5)  # A second layer is no second prompt.
    activations.save_prompt_pooled_activations("m", "only pooled", [0], torch.randn(1, 8), "mean")
    listed = activations.list_cached_prompts("m")
    assert [(entry.prompt, entry.num_tokens) for entry in listed] == [("b", 2), (long, 5), ("a", 3), (odd, 4)]
    assert listed[0].hash == hashlib.sha256(b"b").hexdigest()[:16]
    assert datetime.fromisoformat(listed[0].cached_at) <= datetime.fromisoformat(listed[1].cached_at)
    assert [entry.prompt for entry in activations.read_manifest(identity)] == ["a"]
    assert activations.list_cached_prompts("nobody") == []
    assert activations.load_prompt_activations("m", long, [1, 0])[1].tolist() == [[1] * 5]
    # So all of a model can be exported without its prompts.
    assert activations.export_safetensors("n", tmp_path / "n.safetensors") == 2
    activations.invalidate_extraction_cache("m", [long])
    assert [entry.prompt for entry in activations.list_cached_prompts("m")] == ["b", "a", odd]


def test_what_an_extraction_lacks_is_told_for_many_prompts_at_once() -> None:
    save("all", [0, 1, 2])
    save("some", [1])
    activations.save_prompt_pooled_activations("m", "pooled", [0, 1], torch.randn(1, 16), "mean")
    activations.save_prompt_perplexity("m", "some", torch.ones(3))
    activations.save_prompt_logits("m", "all", torch.randn(1, 3, 20), torch.ones(1, 3), top_k=4)
    prompts = ["all", "some", "pooled", "none"]
    status = activations.batch_check_cache_status("m", prompts, {0, 1}, compute_perplexity=True, cache_logits=True, logit_top_k=4)
    assert status == (["some", "pooled", "none"], ["all", "pooled", "none"], ["some", "pooled", "none"], 1, {1})
    assert activations.batch_check_cache_status("m", prompts, {1}, pooling="mean") == (["all", "some", "none"], [], [], 0, None)
    assert activations.batch_check_cache_status("m", [], {1}) == ([], [], [], 0, None)
    assert activations.get_prompt_cached_raw_layers("m", "all") == {0, 1, 2}
    assert activations.get_prompt_cached_raw_layers("m", "pooled") == set()
    assert activations.get_prompt_cached_pooled_layers("m", "pooled", "mean") == {0, 1}
    assert activations.get_prompt_cached_pooled_layers("m", "none", "mean") is None
    assert activations.get_cache_dir() == Path(activations.cache_info().cache_dir)


def test_states_without_their_mask_do_not_count_as_cached() -> None:
    save("p", [0])
    assert activations.is_prompt_fully_cached("m", "p", {0})
    store = activations.get_backend()
    store.erase(next(entry.key for entry in store.scan() if entry.key is not None and entry.key.fields["part"] == "mask"))
    assert not activations.is_prompt_fully_cached("m", "p", {0})
    assert activations.batch_check_cache_status("m", ["p"], {0})[0] == ["p"]
    with pytest.raises(FileNotFoundError):
        activations.load_prompt_activations("m", "p", [0])


def test_reports_print_as_a_page() -> None:
    save("p", [0, 1])
    activations.save_prompt_pooled_activations("m", "p", [0], torch.randn(1, 8), "mean")
    activations.set_cache_limit(2)
    info = activations.cache_info()
    lines = repr(info).splitlines()
    assert lines[0] == f"Cache directory: {info.cache_dir}"
    assert lines[1].startswith("Total size: ") and lines[2] == "Size limit: 2.0 GiB"
    assert lines[4].startswith("  m: ") and lines[4].endswith("(1 prompts, 2 layers, pooled)")
    assert lines[-2].startswith("Oldest entry: ") and lines[-1].startswith("Newest entry: ")
    info.models[0].model_name = None
    assert info.models[0].model_hash in repr(info.models[0])


def test_tokens_are_those_that_the_mask_counts() -> None:
    for dtype in (torch.int64, torch.bool, torch.float32, torch.uint8):
        activations.save_prompt_activations("m", str(dtype), [0], torch.randn(1, 7, 4), torch.tensor([0, 1, 1, 0, 1, 1, 0]).to(dtype))
        info = activations.discover_cached("m", str(dtype))
        assert info is not None and info.num_tokens == 4
        assert activations.load_prompt_activations("m", str(dtype), [0])[1].tolist() == [[1, 1, 0, 1, 1]]


def test_a_bare_name_finds_a_model_with_fields_that_are_no_text() -> None:
    extractor = extractor_of(twelve_layers(), max_length=5, layers=[1])
    result = CachedExtractor(extractor).extract(prompts_of(3))
    assert result is not None
    assert activations.discover_cached("tiny", prompts_of(3)[0]) is not None
    assert torch.equal(activations.load_prompt_layer("tiny", prompts_of(3)[0], 1)[0], result[0][0, : int(result[1][0].sum())])


def test_discovery_after_partial_saves() -> None:
    for layer in (7, 0, 3):
        save("p", [layer], tokens=4)
        activations.get_backend().flush()
    activations.save_prompt_pooled_activations("m", "p", [2], torch.randn(1, 8), "max")
    activations.save_prompt_pooled_activations("m", "p", [1], torch.randn(1, 8), "max")
    activations.save_prompt_pooled_activations("m", "p", [5], torch.randn(1, 8), "mean")
    activations.save_prompt_router_logits("m", "p", {6: torch.randn(4, 2), 2: torch.randn(4, 2)})
    before = activations.get_backend().stats().counters["activations"].hits
    info = activations.discover_cached("m", "p")
    assert info is not None
    assert (info.raw_layers, info.pooled, info.router_layers) == ([0, 3, 7], {"max": [1, 2], "mean": [5]}, [2, 6])
    assert (info.num_tokens, info.has_logits, info.logits_top_k, info.has_perplexity) == (4, False, None, False)
    assert activations.get_backend().stats().counters["activations"].hits - before == 1  # The mask; no states.
    assert activations.discover_cached("m", "q") is None and activations.discover_cached("n", "p") is None


def everything(prompt: str, model: str = "m") -> None:
    save(prompt, [0, 1], model=model)
    activations.save_prompt_pooled_activations(model, prompt, [0, 1], torch.randn(1, 16), "mean")
    activations.save_prompt_router_logits(model, prompt, {1: torch.randn(3, 2)})
    activations.save_prompt_logits(model, prompt, torch.randn(1, 3, 20), torch.ones(1, 3))
    activations.save_prompt_logits(model, prompt, torch.randn(1, 3, 20), torch.ones(1, 3), top_k=4)
    activations.save_prompt_perplexity(model, prompt, torch.ones(3), torch.ones(2), torch.arange(3))


@pytest.mark.parametrize("is_long", [False, True])
def test_invalidation_by_model_prompt_and_layer_leaves_nothing_of_it(is_long: bool) -> None:
    p, q = ("p" * 400, "q" * 400) if is_long else ("p", "q")  # Long prompts stand in the keys by their digest.
    for prompt in (p, q):
        everything(prompt)
        everything(prompt, "other")
        everything(prompt, ModelIdentity("m", weights="abc", max_length=7))
    activations.set_cache_dtype("float16")
    save(p, [0, 1])
    activations.set_cache_dtype(None)
    per_prompt = 10
    assert len(entries()) == 6 * per_prompt + 2

    # One layer of one prompt, in every dtype, raw and pooled; the mask stays for the other layer.
    assert activations.invalidate_extraction_cache(ModelIdentity("m", weights="abc", max_length=7), [p], [1]) == 3
    assert activations.invalidate_extraction_cache("other", [p], [0]) == 2
    assert activations.discover_cached("other", p).raw_layers == [1]  # type: ignore[union-attr]
    assert activations.discover_cached("other", p).num_tokens == 3  # type: ignore[union-attr]
    # The last layer takes the mask with it.
    assert activations.invalidate_extraction_cache("other", [p], [1]) == 4
    assert not any(fields["model"] == "other" and fields["part"] == "mask" and fields["prompt"] == entry_prompt(p) for fields in entries())
    assert activations.invalidate_extraction_cache("other", layers=[0, 1]) == 6
    assert {fields["part"] for fields in entries() if fields["model"] == "other"} == {"logits", "top_k_logits", "perplexity", "token_perplexity"}
    # One prompt of every identity of the name.
    assert activations.invalidate_extraction_cache("m", [p]) == per_prompt + 2 + per_prompt - 3
    assert {fields["prompt"] for fields in entries() if fields["model"] == "m"} == {entry_prompt(q)}
    # All of it.
    assert activations.invalidate_extraction_cache("m") == 2 * per_prompt
    assert {fields["model"] for fields in entries()} == {"other"}
    assert activations.clear_cache() == 8 and entries() == []


def entry_prompt(prompt: str) -> Any:
    return lmemo.Key.of("x", prompt=prompt).fields["prompt"]


def test_one_extraction_goes_by_its_extractor() -> None:
    model, prompts = twelve_layers(), prompts_of(4)
    CachedExtractor(extractor_of(model, layers=[0, 1])).extract(prompts, cache_only=True)
    extraction = CachedExtractor(extractor_of(model, layers=[2, 3]))
    extraction.extract(prompts, cache_only=True)
    assert activations.invalidate_extraction_cache(extraction, prompts[:1]) == 2
    assert activations.invalidate_extraction_cache(extraction.extractor) == 6
    assert sorted({fields["layer"] for fields in entries() if fields["part"] == "raw"}) == [0, 1]


def test_none_is_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMEMO_ACTIVATIONS_STORE", str(tmp_path / "default"))
    activations.set_cache_backend(None)
    save("p", [0])
    assert Path(activations.cache_info().cache_dir) == tmp_path / "default"
    activations.set_cache_backend(tmp_path / "other")
    assert activations.discover_cached("m", "p") is None
    activations.set_cache_backend(None)
    assert activations.discover_cached("m", "p") is not None


def test_a_cache_that_lmprobe_wrote_is_taken_over(tmp_path: Path) -> None:
    from lmprobe import cache as theirs

    theirs.set_cache_backend(str(tmp_path / "lmprobe"))
    try:
        prompts = ["The capital of France is", "Zwölf Boxkämpfer jagen Viktor", "a\nb", "x" * 500]
        states = {prompt: torch.randn(1, 5, 3 * 16) for prompt in prompts}
        mask = torch.tensor([[0, 1, 1, 1, 0]])
        for prompt in prompts:
            theirs.save_prompt_activations("org/model", prompt, [0, 4, 9], states[prompt], mask)
            theirs.save_prompt_pooled_activations("org/model", prompt, [4], states[prompt][:, 3, 16:32], "last_token")
        theirs.save_prompt_logits("org/model", prompts[0], states[prompts[0]], mask, top_k=6)
        theirs.save_prompt_logits("org/model", prompts[1], states[prompts[1]], mask)
        theirs.save_prompt_perplexity("org/model", prompts[0], torch.tensor([1.5, 1, 2]), torch.tensor([1.0, 2]), torch.tensor([5, 6, 7]))
        theirs.save_prompt_router_logits("org/model", prompts[2], {4: torch.arange(10.0).reshape(5, 2)})
        theirs.save_prompt_pooled_activations("other", "only pooled", [1], torch.ones(1, 16), "mean")  # Not in its manifest.
        expected = {prompt: theirs.discover_cached("org/model", prompt) for prompt in prompts}
        expected_logits = theirs.load_prompt_logits("org/model", prompts[0], top_k=6)
        report = activations.import_lmprobe(tmp_path / "lmprobe", prompts=["only pooled"])
        assert (report.prompts, report.unknown_prompts, report.unreadable_files) == (5, 0, 0)
        for prompt, wanted in expected.items():
            assert wanted is not None
            found = vars(activations.discover_cached("org/model", prompt))
            assert {name: found[name] for name in vars(wanted)} == vars(wanted)
            assert torch.equal(activations.load_prompt_activations("org/model", prompt, [9, 0])[0], torch.cat([states[prompt][:, 1:4, 32:], states[prompt][:, 1:4, :16]], dim=-1))
            assert torch.equal(activations.load_prompt_pooled_activations("org/model", prompt, [4], "last_token"), states[prompt][:, 3, 16:32])
        assert all(torch.equal(a, b) for a, b in zip(activations.load_prompt_logits("org/model", prompts[0], top_k=6), expected_logits, strict=True))
        assert torch.equal(activations.load_prompt_router_logits("org/model", prompts[2], [4])[4], torch.arange(10.0).reshape(5, 2))
        assert [its.tolist() for its in activations.load_prompt_token_perplexity("org/model", prompts[0])] == [[1.0, 2.0], [5, 6, 7]]
        assert activations.is_prompt_pooled_cached("other", "only pooled", {1}, "mean")
        # Without the prompts, what nobody knows is counted and left alone.
        activations.set_cache_backend(tmp_path / "second")
        assert activations.import_lmprobe(tmp_path / "lmprobe").unknown_prompts == 1
    finally:
        theirs.set_cache_backend(None)
        os.environ.pop("LMPROBE_CACHE_DIR", None)


def test_what_is_missing_is_named() -> None:
    activations.save_prompt_router_logits("m", "p", {1: torch.randn(3, 2)})
    for load, error, words in [
        (lambda: activations.load_prompt_activations("m", "p", [0]), FileNotFoundError, "No cached activations"),
        (lambda: activations.load_prompt_pooled_activations("m", "p", [0], "mean"), FileNotFoundError, "No cached pooled"),
        (lambda: activations.load_prompt_logits("m", "p"), FileNotFoundError, "No cached logits"),
        (lambda: activations.load_prompt_perplexity("m", "p"), FileNotFoundError, "No cached perplexity"),
        (lambda: activations.load_prompt_router_logits("m", "p", [1, 5]), KeyError, "router_layer_5"),
        (lambda: activations.set_cache_backend(42), TypeError, "Expected CacheBackend"),  # type: ignore[arg-type]
        (lambda: activations.set_cache_dtype("float8"), ValueError, "Unknown dtype"),
    ]:
        with pytest.raises(error, match=words):
            load()


def test_pooled_batches_show_their_progress(capsys: pytest.CaptureFixture[str]) -> None:
    for prompt in ("a", "b"):
        activations.save_prompt_pooled_activations("m", prompt, [0], torch.randn(1, 8), "last_token")
    assert activations.load_pooled_batch("m", ["a", "b"], [0], show_progress=True).shape == (2, 8)
    assert "2/2" in capsys.readouterr().err


class Ones:
    model_name, batch_size, layer_indices = "ones", 2, [0]

    def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
        return torch.ones(len(prompts), 2, 4), torch.ones(len(prompts), 2)


def test_wrong_arguments_are_refused_in_words_and_leave_nothing_behind() -> None:
    states, mask = torch.randn(1, 3, 8), torch.ones(1, 3)
    no_layers = Ones()
    no_layers.layer_indices = []
    wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: activations.save_prompt_activations("m", "p", [0], states.numpy(), mask), TypeError, "activations: expected a torch tensor, got ndarray"),
        (lambda: activations.save_prompt_activations("m", "p", [0], states, None), TypeError, "attention_mask: expected a torch tensor"),
        (lambda: activations.save_prompt_activations("m", "p", [0, 1, 2], states, mask), ValueError, "does not divide into 3 layers"),
        (lambda: activations.save_prompt_activations("m", None, [0], states, mask), TypeError, "prompt: expected str"),  # type: ignore[arg-type]
        (lambda: activations.save_prompt_activations(None, "p", [0], states, mask), TypeError, "model_name: expected str"),  # type: ignore[arg-type]
        (lambda: activations.save_prompt_activations("m", "p", [0], states.to(torch.complex64), mask), ValueError, "complex64"),
        (lambda: activations.save_prompt_pooled_activations("m", "p", [0], torch.randn(2, 8), "mean"), ValueError, "expected one prompt"),
        (lambda: activations.save_prompt_logits("m", "p", states, mask, top_k=0), ValueError, "top_k: expected at least 1"),
        (lambda: activations.load_prompt_activations("m", "kept", []), ValueError, "layers: expected at least one"),
        (lambda: activations.load_layer_last_token("m", "kept", 0), TypeError, "got one str"),
        (lambda: activations.load_pooled_batch("m", "kept", [0]), TypeError, "got one str"),
        (lambda: activations.invalidate_extraction_cache("m", "kept"), TypeError, "got one str"),
        (lambda: activations.set_cache_limit("5"), TypeError, "gb: expected None or a number, got str"),  # type: ignore[arg-type]
        (lambda: CachedExtractor(Ones()).extract("abc"), TypeError, "got one str"),
        (lambda: CachedExtractor(Ones()).extract(["a", None]), TypeError, "prompt: expected str, got NoneType"),  # type: ignore[list-item]
        (lambda: CachedExtractor(no_layers).extract(["a"]), ValueError, "layer_indices: expected at least one"),
    ]
    save("kept", [0])
    before = entries()
    for call, error, words in wrong:
        with pytest.raises(error, match=words):
            call()
        assert entries() == before, words


def test_what_is_said_to_be_there_can_be_loaded() -> None:
    activations.set_cache_dtype("float16")
    save("p", [0, 1])
    activations.save_prompt_pooled_activations("m", "p", [0], torch.randn(1, 8), "mean")
    activations.set_cache_dtype("float32")
    save("p", [2])
    activations.save_prompt_pooled_activations("m", "p", [1], torch.randn(1, 8), "mean")
    activations.set_cache_dtype(None)
    for layers in ([0], [1, 0], [2], [0, 2], [0, 1, 2]):
        is_there = activations.is_prompt_fully_cached("m", "p", layers)
        assert activations.batch_check_cache_status("m", ["p"], layers)[0] == ([] if is_there else ["p"])
        assert is_there == (layers in ([0], [1, 0], [2]))  # Two dtypes are not put side by side.
        if is_there:
            activations.load_prompt_activations("m", "p", layers)
        else:
            with pytest.raises(FileNotFoundError):
                activations.load_prompt_activations("m", "p", layers)
    assert activations.is_prompt_pooled_cached("m", "p", [1], "mean") and not activations.is_prompt_pooled_cached("m", "p", [0, 1], "mean")


def test_with_caching_off_nothing_is_said_to_be_there() -> None:
    save("p", [0])
    activations.save_prompt_perplexity("m", "p", torch.randn(3))
    assert activations.is_prompt_fully_cached("m", "p", [0]) and activations.is_prompt_perplexity_cached("m", "p")
    activations.set_cache_limit(0)
    assert activations.discover_cached("m", "p") is None and activations.get_prompt_cached_raw_layers("m", "p") is None
    assert not activations.is_prompt_fully_cached("m", "p", [0]) and not activations.is_prompt_perplexity_cached("m", "p")
    assert activations.batch_check_cache_status("m", ["p"], [0], compute_perplexity=True)[:2] == (["p"], ["p"])
    assert activations.cache_info().models[0].num_prompts == 1  # What takes space is shown all the same.
    activations.set_cache_limit(None)
    assert activations.is_prompt_fully_cached("m", "p", [0])


def test_layers_come_as_any_sequence_of_numbers() -> None:
    states = save("p", [0, 1])
    for layers in ((0, 1), range(2), numpy.array([0, 1]), torch.tensor([0, 1])):
        assert torch.equal(activations.load_prompt_activations("m", "p", layers)[0], states)  # type: ignore[arg-type]

        class Extractor:
            model_name, batch_size, layer_indices = "m", 2, layers

            def extract(self, prompts: list[str], remote: bool = False) -> Any:
                raise AssertionError("everything is stored")

        result = CachedExtractor(Extractor()).extract(["p"])
        assert result is not None and torch.equal(result[0], states)


def test_odd_tensors_are_stored_as_what_they_are_or_refused_in_words() -> None:
    negative = torch._neg_view(torch.randn(1, 3, 8))
    activations.save_prompt_activations("m", "negative", [0], negative, torch.ones(1, 3))
    assert torch.equal(activations.load_prompt_layer("m", "negative", 0), negative)
    for shape in ((1, 3), (1, 3, 2, 4)):
        with pytest.raises(ValueError, match="layers side by side"):
            activations.save_prompt_activations("m", "p", [0], torch.randn(shape), torch.ones(1, 3))
    assert activations.discover_cached("m", "p") is None


def test_a_read_only_cache_serves_and_says_once_that_it_keeps_nothing(fresh_cache: Path, caplog: pytest.LogCaptureFixture) -> None:  # noqa: F811
    states = save("p", [0])
    activations.get_backend().flush()
    with lmemo.Store(fresh_cache, read_only=True) as store:
        activations.set_cache_backend(store)
        with caplog.at_level("WARNING"):
            for prompt in ("q", "r"):
                save(prompt, [0])
        assert [record.message for record in caplog.records] == [f"[CACHE] nothing is stored: {fresh_cache} was opened read-only"]
        assert torch.equal(activations.load_prompt_layer("m", "p", 0), states) and activations.discover_cached("m", "q") is None
        activations.set_cache_backend(lmemo.MemoryStore())
