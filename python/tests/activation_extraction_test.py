"""Extraction through the cache: bit for bit what the model says, and never twice."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from activation_fixtures import fresh_cache  # noqa: F401
from activation_models import Passes, extractor_of, prompts_of, twelve_layers

import lmemo
from lmemo import activations
from lmemo.activations import CachedExtractor, ModelIdentity


def test_500_prompts_all_layers_equal_direct_extraction_and_cost_nothing_the_second_time() -> None:
    model, prompts = twelve_layers(), prompts_of(500)
    direct, direct_mask = extractor_of(model, batch_size=10).extract(prompts)
    passes = Passes(model)
    CachedExtractor(extractor_of(model, batch_size=10)).extract(prompts[:490], cache_only=True)
    assert passes.rows == 490 and passes.passes == 49
    passes.reset()
    first = CachedExtractor(extractor_of(model, batch_size=10)).extract(prompts)
    assert first is not None
    assert passes.rows == 10 and passes.passes == 1  # The ten that are new.
    passes.reset()
    pooled = CachedExtractor(extractor_of(model, batch_size=10, pooling="mean")).extract(prompts)
    assert pooled is not None and torch.equal(pooled[0][:, 0], activations.pool(direct, direct_mask, "mean"))
    assert passes.rows == 500
    passes.reset()
    again = CachedExtractor(extractor_of(model, batch_size=10, pooling="mean")).extract(prompts)
    assert again is not None and torch.equal(again[0], pooled[0])
    second = CachedExtractor(extractor_of(model, batch_size=10)).extract(prompts)
    assert second is not None
    assert passes.passes == 0
    for states, mask in (first, second):
        assert states.dtype == torch.float32
        assert torch.equal(mask, direct_mask)
        assert torch.equal(states, direct * direct_mask.unsqueeze(-1))
    # In another order, with a duplicate, in another process's view of the store.
    activations.set_cache_backend(lmemo.Store(activations.cache_info().cache_dir))
    some = [prompts[7], prompts[3], prompts[7]]
    third = CachedExtractor(extractor_of(model, batch_size=10)).extract(some)
    assert third is not None and passes.passes == 0
    states, mask = third
    assert states.shape[1] == int(direct_mask[[7, 3]].sum(dim=1).max())
    for row, place in enumerate((7, 3, 7)):
        length = int(direct_mask[place].sum())
        assert torch.equal(states[row, :length], direct[place, :length])
        assert int(mask[row].sum()) == length


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_half_precision_equals_torchs_own_cast(dtype: str, compression: Any) -> None:
    model, prompts = twelve_layers(), prompts_of(60)
    direct, mask = extractor_of(model).extract(prompts)
    expected = (direct * mask.unsqueeze(-1)).to(getattr(torch, dtype))
    activations.set_cache_dtype(dtype)
    activations.set_cache_compression(compression)
    passes = Passes(model)
    for _ in range(2):
        result = CachedExtractor(extractor_of(model)).extract(prompts)
        assert result is not None
        assert result[0].dtype == getattr(torch, dtype)
        assert torch.equal(result[0], expected)
    assert passes.rows == 60
    assert activations.discover_cached(extractor_of(model).model_name, prompts[0]).dtypes == [dtype]  # type: ignore[union-attr]


@pytest.mark.parametrize("pooling", ["last_token", "first_token", "mean", "max"])
def test_pooled_vectors_are_cached_without_the_raw_states(pooling: str) -> None:
    model, prompts = twelve_layers(), prompts_of(50)
    raw, mask = extractor_of(model, layers=[0, -1]).extract(prompts)
    passes = Passes(model)
    for _ in range(2):
        result = CachedExtractor(extractor_of(model, layers=[0, -1], pooling=pooling)).extract(prompts)
        assert result is not None
        assert torch.equal(result[0][:, 0], activations.pool(raw, mask, pooling))
        assert result[1].tolist() == [[1]] * 50
    assert passes.rows == 50
    info = activations.discover_cached(extractor_of(model).model_name, prompts[0])
    assert info is not None and info.raw_layers == [] and info.pooled == {pooling: [0, 11]}


def test_only_new_prompts_and_new_layers_are_computed() -> None:
    model, prompts = twelve_layers(), prompts_of(60)
    passes = Passes(model)
    CachedExtractor(extractor_of(model, layers=list(range(10)))).extract(prompts[:50], cache_only=True)
    assert passes.rows == 50
    passes.reset()
    CachedExtractor(extractor_of(model, layers=list(range(10)))).extract(prompts)
    assert passes.rows == 10

    asked: list[tuple[int, list[int]]] = []
    extractor = extractor_of(model)
    extract_batch = extractor.extract_batch

    def watched(batch: Any, layers: Any, **options: Any) -> Any:
        asked.append((len(batch), list(layers)))
        return extract_batch(batch, layers, **options)

    extractor.extract_batch = watched  # type: ignore[method-assign]
    before = lmemo.Store(activations.cache_info().cache_dir).stats().live_bytes
    result = CachedExtractor(extractor).extract(prompts)
    assert {tuple(layers) for _, layers in asked} == {(10, 11)} and sum(count for count, _ in asked) == 60
    direct, mask = extractor_of(model).extract(prompts)
    assert result is not None and torch.equal(result[0], direct * mask.unsqueeze(-1))
    # What was there is not written again: two layers of twelve.
    activations.get_backend().flush()
    after = lmemo.Store(activations.cache_info().cache_dir).stats().live_bytes
    assert after - before < (before + 60 * 400) * 2 / 10 * 1.05


def test_another_models_weights_are_a_miss_and_explain_says_why() -> None:
    prompts = prompts_of(5)
    one, other = extractor_of(twelve_layers(0)), extractor_of(twelve_layers(1))
    CachedExtractor(one).extract(prompts, cache_only=True)
    passes = Passes(other.model)
    CachedExtractor(other).extract(prompts, cache_only=True)
    assert passes.rows == 5
    assert "hit" in activations.explain(other.model_name, prompts[0], 3)
    third = extractor_of(twelve_layers(2))
    assert "weights changed" in activations.explain(third.model_name, prompts[0], 3)
    # One number in one weight is enough.
    with torch.no_grad():
        one.model.transformer.h[5].mlp.c_fc.weight[3, 7] += 0.001
    changed = extractor_of(one.model)
    assert changed.model_name != one.model_name
    assert activations.discover_cached(changed.model_name, prompts[0]) is None
    # By the bare name, two models are no answer.
    with pytest.raises(LookupError, match="2 models called 'tiny'"):
        activations.load_prompt_layer("tiny", prompts[0], 3)


def test_a_bare_name_finds_the_only_model_of_that_name() -> None:
    prompts = prompts_of(3)
    extractor = extractor_of(twelve_layers())
    result = CachedExtractor(extractor).extract(prompts)
    assert result is not None
    assert isinstance(extractor.model_name, ModelIdentity) and extractor.model_name == "tiny"
    info = activations.discover_cached("tiny", prompts[1])
    assert info is not None and info.raw_layers == list(range(12))
    layer = activations.load_prompt_layer("tiny", prompts[1], 11)
    assert torch.equal(layer[0], result[0][1, : layer.shape[1], -16:])


class Fake:
    """The smallest thing that can be wrapped."""

    model_name = "fake"
    batch_size = 4

    def __init__(self, layers: list[int], dtype: Any = torch.float32) -> None:
        self.layer_indices = layers
        self.given: list[list[str]] = []
        self._dtype = dtype
        self.fails = 0

    def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
        if remote and self.fails:
            self.fails -= 1
            raise ConnectionError("gone")
        self.given.append(list(prompts))
        longest = max(map(len, prompts))
        # Padded on the left, with rubbish in the padding.
        states = torch.full((len(prompts), longest, len(self.layer_indices) * 8), float("nan"), dtype=self._dtype)
        mask = torch.zeros((len(prompts), longest), dtype=torch.int64)
        for row, prompt in enumerate(prompts):
            for place, letter in enumerate(prompt):
                for column, layer in enumerate(self.layer_indices):
                    states[row, longest - len(prompt) + place, column * 8 : column * 8 + 8] = ord(letter) + layer / 16
            mask[row, longest - len(prompt) :] = 1
        return states, mask


def test_anything_with_the_small_protocol_can_be_wrapped() -> None:
    fake = Fake([2, 5])
    result = CachedExtractor(fake).extract(["abc", "z", "abc", "defgh", "zz", "y"])
    assert result is not None
    states, mask = result
    assert states.shape == (6, 5, 16) and mask.sum(dim=1).tolist() == [3, 1, 3, 5, 2, 1]
    assert [len(batch) for batch in fake.given] == [4, 1]
    assert states[0, :, 0].tolist() == [97.125, 98.125, 99.125, 0, 0]
    assert states[3, :, 8].tolist() == [ord(letter) + 5 / 16 for letter in "defgh"]
    assert torch.equal(states[0], states[2])
    assert CachedExtractor(fake).extract(["abc"]) is not None and len(fake.given) == 2
    assert CachedExtractor(fake).extract(["new"], cache_only=True) is None
    assert fake.given[-1] == ["new"]
    CachedExtractor(fake).extract(["abc"], invalidate_cache=True)
    assert fake.given[-1] == ["abc"]


def test_with_caching_off_it_still_returns() -> None:
    activations.set_cache_limit(0)
    fake = Fake([1])
    for _ in range(2):
        result = CachedExtractor(fake).extract(["abc", "de"])
        assert result is not None and result[0].shape == (2, 3, 8)
    assert len(fake.given) == 2
    activations.set_cache_limit(None)
    assert activations.cache_info().total_size_bytes == 0


def test_remote_batches_are_retried_and_what_fails_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    fake = Fake([1])
    fake.fails = 2
    assert CachedExtractor(fake).extract(["abc"], remote=True) is not None
    assert len(slept) == 2 and 1 <= slept[0] <= 1.25 and 2 <= slept[1] <= 2.5
    fake.fails = 3
    prompts = [f"prompt {number}" for number in range(8)]
    with pytest.raises(RuntimeError, match="4 prompts failed.*'prompt 0'"):
        CachedExtractor(fake).extract(prompts, remote=True, max_retries=2)
    assert fake.given[-1] == prompts[4:]
    assert CachedExtractor(fake).extract(prompts, remote=True) is not None
    assert fake.given[-1] == prompts[:4]
    fake.fails = 1
    with pytest.raises(ConnectionError):
        CachedExtractor(fake).extract(["other"], remote=True, max_retries=0)


def test_pauses_grow_with_jitter_up_to_a_minute_and_local_errors_are_not_retried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    fake = Fake([1])
    fake.fails = 9
    assert CachedExtractor(fake).extract(["abc"], remote=True, max_retries=9) is not None
    growth = [pause / base for pause, base in zip(slept, [1, 2, 4, 8, 16, 32, 60, 60, 60], strict=True)]
    assert all(1 <= factor <= 1.25 for factor in growth) and len(set(growth)) > 1
    assert "attempt 1/10 failed" in caplog.text

    class Broken(Fake):
        def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
            super().extract(prompts)
            raise RuntimeError("out of memory")

    slept.clear()
    broken = Broken([1])
    with pytest.raises(RuntimeError, match="out of memory"):
        CachedExtractor(broken).extract(["xyz"], remote=False, max_retries=5)
    assert len(broken.given) == 1 and slept == []


def test_every_failed_prompt_is_named_and_all_others_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)

    class Picky(Fake):
        def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
            if any("bad" in prompt for prompt in prompts):
                raise ConnectionError("refused")
            return super().extract(prompts, remote)

    picky = Picky([1])
    picky.batch_size = 1
    prompts = [f"{'bad' if number % 3 == 0 else 'good'} {number}" for number in range(9)]
    with pytest.raises(RuntimeError) as told:
        CachedExtractor(picky).extract(prompts, remote=True, max_retries=1, cache_only=True)
    assert "3 prompts failed" in str(told.value) and "6/9 prompts are now cached" in str(told.value)
    assert all((repr(prompt) in str(told.value)) == ("bad" in prompt) for prompt in prompts)
    assert all((activations.discover_cached("fake", prompt) is None) == ("bad" in prompt) for prompt in prompts)


def test_what_happens_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lmemo.activations"):
        CachedExtractor(Fake([1])).extract(["abc", "de"])
        CachedExtractor(Fake([1])).extract(["abc", "de", "f"])
    assert "HIT: 0/2 prompts already cached; MISS: 2 need extraction" in caplog.text
    assert "HIT: 2/3 prompts already cached; MISS: 1 need extraction" in caplog.text


def test_float16_is_never_served_where_float32_is_wanted() -> None:
    activations.set_cache_dtype("float16")
    fake = Fake([3])
    first = CachedExtractor(fake).extract(["abc", "de"])
    assert first is not None and first[0].dtype == torch.float16
    activations.set_cache_dtype("float32")
    again = CachedExtractor(fake).extract(["abc", "de"])
    assert again is not None and again[0].dtype == torch.float32 and len(fake.given) == 2
    # From float32, both halves come without a pass, and as torch would have rounded.
    activations.set_cache_dtype("bfloat16")
    rounded = CachedExtractor(fake).extract(["abc", "de"])
    assert rounded is not None and len(fake.given) == 2
    assert torch.equal(rounded[0], again[0].to(torch.bfloat16))
    # Without a wish: one prompt in float16 only, one new. Nothing is mixed.
    activations.set_cache_dtype("float16")
    CachedExtractor(fake).extract(["only half"])
    activations.set_cache_dtype(None)
    mixed = CachedExtractor(fake).extract(["only half", "brand new"])
    assert mixed is not None and mixed[0].dtype == torch.float32
    assert mixed[0][0, 0, 0].item() == ord("o") + 3 / 16


def test_the_limit_holds_and_what_is_returned_is_complete(fresh_cache: Path) -> None:
    limit = 2 << 20
    activations.set_cache_limit(limit / 1024**3)
    fake = Fake([0, 1, 2, 3])
    largest = 0
    for run in range(4):
        prompts = [f"{run} {number} " + "x" * 60 for number in range(250)]
        result = CachedExtractor(fake).extract(prompts)
        assert result is not None
        for row, prompt in enumerate(prompts):
            assert result[0][row, 2, 0].item() == ord(prompt[2])
        size = sum(path.stat().st_size for path in fresh_cache.rglob("*") if path.is_file())
        largest = max(largest, size)
        assert size <= limit, f"run {run}: {size}"
        assert activations.cache_info().total_size_bytes <= limit
    assert largest > limit // 3
    given = len(fake.given)
    CachedExtractor(fake).extract(prompts[-20:])
    assert len(fake.given) == given  # The latest survive.
    activations.set_cache_limit(limit / 1024**3, enforce="manual")
    CachedExtractor(fake).extract([f"more {number} " + "x" * 60 for number in range(600)], cache_only=True)
    assert activations.cache_info().total_size_bytes > limit
    activations.evict()
    assert activations.cache_info().total_size_bytes <= limit


def test_a_damaged_entry_is_recomputed_and_reported(fresh_cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    fake = Fake([0, 1])
    prompts = [f"prompt number {number}" for number in range(12)]
    expected = CachedExtractor(fake).extract(prompts)
    assert expected is not None
    activations.get_backend().flush()
    [segment] = (fresh_cache / "segments").glob("*.seg")
    data = bytearray(segment.read_bytes())
    # In the middle of some tensor.
    state = expected[0][5, 4, :8].numpy().tobytes()
    place = data.index(state)
    data[place] ^= 1
    segment.write_bytes(data)
    activations.set_cache_backend(fresh_cache)
    fake.given.clear()
    with caplog.at_level(logging.WARNING):
        again = CachedExtractor(fake).extract(prompts)
    assert again is not None
    assert torch.equal(again[0], expected[0])
    assert 1 <= len(fake.given) <= 12 and len(fake.given[0]) < 12
    assert any("checksum" in record.getMessage() for record in caplog.records)
    assert activations.get_backend().stats().damaged_records >= 1
    fake.given.clear()
    assert CachedExtractor(fake).extract(prompts) is not None and fake.given == []


PROGRAM = """
import sys, os
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from activation_models import twelve_layers, prompts_of, extractor_of, Passes
from lmemo import activations
activations.set_cache_backend({store!r})
model = twelve_layers()
passes = Passes(model)
slow = float(sys.argv[1])
if slow:
    import time
    model.register_forward_hook(lambda *_: (print("pass", flush=True), time.sleep(slow))[1])
sys.stdin.readline() if "wait" in sys.argv else None
result = activations.CachedExtractor(extractor_of(model, batch_size=8)).extract(prompts_of(160))
print("rows", passes.rows, float(result[0].double().sum()), flush=True)
"""


def start(store: Path, *arguments: str) -> Any:
    program = PROGRAM.format(tests=os.path.dirname(__file__), store=str(store))
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_a_kill_costs_at_most_one_batch(fresh_cache: Path) -> None:
    process = start(fresh_cache, "0.05")
    seen = 0
    for line in process.stdout:
        seen += line == "pass\n"
        if seen == 9:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    activations.set_cache_backend(fresh_cache)  # Opened anew: takes over what the dead one left.
    model = twelve_layers()
    passes = Passes(model)
    result = CachedExtractor(extractor_of(model, batch_size=8)).extract(prompts_of(160))
    assert result is not None
    assert passes.rows <= 160 - 8 * 8
    direct, mask = extractor_of(model, batch_size=8).extract(prompts_of(160))
    assert torch.allclose(result[0], direct * mask.unsqueeze(-1), atol=1e-5)


def test_an_interrupt_costs_at_most_the_running_batch(fresh_cache: Path) -> None:
    class Interrupted(Fake):
        def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
            given = super().extract(prompts, remote)
            if len(self.given) == 3:
                signal.raise_signal(signal.SIGINT)
            return given

    fake = Interrupted([1])
    prompts = [f"prompt {number}" for number in range(16)]
    with pytest.raises(KeyboardInterrupt):
        CachedExtractor(fake).extract(prompts)
    # It is published, not only known to this process.
    assert list((fresh_cache / "writing").glob("*")) == []
    with lmemo.Store(fresh_cache, read_only=True) as seen:
        assert {entry.key.fields["prompt"] for entry in seen.scan("activations") if entry.key is not None} == set(prompts[:8])
    result = CachedExtractor(fake).extract(prompts)
    assert result is not None and fake.given[3:] == [prompts[8:12], prompts[12:]]


def test_two_processes_share_the_work(fresh_cache: Path) -> None:
    both = [start(fresh_cache, "0.03", "wait") for _ in range(2)]
    time.sleep(0)
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120)[0].split("rows ")[1].split() for process in both]
    assert told[0][1] == told[1][1]
    rows = [int(row) for row, _ in told]
    assert 160 <= sum(rows) <= 176, rows
    info = activations.cache_info()
    assert [model.num_prompts for model in info.models] == [160] and info.models[0].num_layers == 12


def test_a_dead_owner_of_a_claim_blocks_nobody(fresh_cache: Path) -> None:
    process = start(fresh_cache, "30")
    assert process.stdout.readline() == "pass\n"  # It holds the first batch, and is not going to finish it.
    model = twelve_layers()
    passes = Passes(model)
    from threading import Timer

    killer = Timer(1.0, process.kill)
    killer.start()
    result = CachedExtractor(extractor_of(model, batch_size=8)).extract(prompts_of(160))
    killer.join()
    process.communicate()
    assert result is not None and passes.rows == 160
