"""ScoringView on real transformers models: right scores, batched as single, and never another model's."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch

import lmemo
from lmemo.forward import BackendInstrumentation, ModelView, decode_value, encode_value
from lmemo.hf import ScoringView, weights_digest
from tiny_models import WORDS, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()


def texts(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randrange(1, 30))) for _ in range(count)]


# Positions that are learnt, turned, seen through a window, and told by the distance alone.
@pytest.fixture(scope="module", params=["gpt2", "llama", "neox", "mistral", "bloom"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_model(kind=request.param)


def logprobs_by_hand(model: Any, ids: list[int]) -> Any:
    with torch.no_grad():
        return torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0].double(), dim=-1).numpy()


def test_scores_are_those_of_the_model(model: Any) -> None:
    view = ScoringView(model, TOKENIZER)
    for text in texts(5):
        ids = TOKENIZER(text)["input_ids"]
        by_hand = logprobs_by_hand(model, ids)
        dist = view.next_token_dist(text, top_k=5)
        assert dist.vocab_size == len(WORDS) + 3
        assert dist.token_ids.tolist() == np.argsort(-by_hand[-1])[:5].tolist()
        np.testing.assert_allclose(dist.logprobs, np.sort(by_hand[-1])[::-1][:5], atol=1e-5)
        rest = 1 - np.exp(np.sort(by_hand[-1])[::-1][:5]).sum()
        assert dist.tail_logprob == pytest.approx(math.log(rest), abs=1e-4)
        everything = view.next_token_dist(text, top_k=10_000)
        assert len(everything.token_ids) == dist.vocab_size and everything.tail_logprob is None

        rolling = view.rolling_logprob(text)
        assert rolling.token_ids.tolist() == ids and rolling.num_tokens == len(ids)
        np.testing.assert_allclose(rolling.logprobs, [by_hand[n, ids[n + 1]] for n in range(len(ids) - 1)], atol=1e-5)
        assert rolling.total_logprob == pytest.approx(float(rolling.logprobs.sum()), abs=1e-4)

        together = TOKENIZER(text + " the cat")["input_ids"]
        by_hand = logprobs_by_hand(model, together)
        expected = by_hand[-3, together[-2]] + by_hand[-2, together[-1]]
        assert view.logprob_of(text, " the cat") == pytest.approx(expected, abs=1e-4)
    assert view.logprob_of("the", "") == 0.0


def test_batched_equals_single(model: Any) -> None:
    prompts = texts(20, seed=1)
    single, batched = ScoringView(model, TOKENIZER), ScoringView(model, TOKENIZER, batch_size=7)
    for alone, together in zip(map(single.next_token_dist, prompts), batched.next_token_dist_batch(prompts)):
        order, order_together = np.argsort(alone.token_ids), np.argsort(together.token_ids)
        np.testing.assert_array_equal(alone.token_ids[order], together.token_ids[order_together])
        np.testing.assert_allclose(alone.logprobs[order], together.logprobs[order_together], atol=1e-4)
    for alone_rolling, together_rolling in zip(map(single.rolling_logprob, prompts), batched.rolling_logprob_batch(prompts)):
        np.testing.assert_array_equal(alone_rolling.token_ids, together_rolling.token_ids)
        np.testing.assert_allclose(alone_rolling.logprobs, together_rolling.logprobs, atol=1e-4)
    pairs = [(prompt, " " + " ".join(WORDS[: n % 5 + 1])) for n, prompt in enumerate(prompts)]
    np.testing.assert_allclose([single.logprob_of(*pair) for pair in pairs], batched.logprob_of_batch(pairs), atol=1e-4)
    stats = batched.instrumentation.stats
    assert (stats.batches_sent, stats.forward_passes) == (3, len(set(prompts)) * 2 + len(set(pairs)))


def test_logits_are_made_only_where_somebody_asks(model: Any) -> None:
    shapes = []
    handle = model.lm_head.register_forward_hook(lambda _, __, logits: shapes.append(tuple(logits.shape[:2])))
    try:
        ScoringView(model, TOKENIZER).next_token_dist_batch(["the cat sat on", "a dog", "the sky is blue ."])
        ScoringView(model, TOKENIZER).logprob_of("the cat sat on a", " mat")
    finally:
        handle.remove()
    assert shapes == [(3, 3), (1, 1)]


def test_a_second_call_runs_no_model(model: Any) -> None:
    view = ScoringView(model, TOKENIZER)
    calls = []
    handle = model.register_forward_hook(lambda *_: calls.append(1))
    try:
        for _ in range(2):
            view.next_token_dist("the cat")
            view.next_token_dist_batch(["the cat", "a dog", "a dog"])
            view.rolling_logprob("the cat sat")
            view.logprob_of("the cat", " sat")
    finally:
        handle.remove()
    assert len(calls) == 4
    assert view.next_token_dist("the cat", 3) != view.next_token_dist("the cat", 4)


def test_long_and_empty_inputs_are_refused_in_words() -> None:
    view = ScoringView(tiny_model(positions=8), TOKENIZER)
    assert view.max_length == 8
    long = " ".join(["the"] * 9)
    for ask in (view.next_token_dist, view.rolling_logprob):
        with pytest.raises(ValueError, match="has 9 tokens; the model takes at most 8"):
            ask(long)
    with pytest.raises(ValueError, match="prompt with its completion .* has 9 tokens"):
        view.logprob_of("the the the the", " the the the the the")
    with pytest.raises(ValueError, match="9 tokens"):
        view.next_token_dist_batch(["the", long])
    assert len(view.instrumentation.cache) == 0
    assert view.next_token_dist("").vocab_size, "an empty prompt begins with the token that begins texts"
    with pytest.raises(ValueError, match="top_k must be positive; got 0"):
        view.next_token_dist("the", 0)
    with pytest.raises(ValueError, match="batch_size"):
        ScoringView(tiny_model(), TOKENIZER, batch_size=0)
    assert view.rolling_logprob("the").logprobs.shape == (0,)


def test_the_longest_input_is_what_the_model_takes() -> None:
    from transformers import MptConfig, MptForCausalLM, RobertaConfig, RobertaForCausalLM

    vocabulary = len(WORDS) + 3
    of_roberta = RobertaConfig(vocab_size=vocabulary, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                               max_position_embeddings=10, is_decoder=True)  # fmt: skip
    of_mpt = MptConfig(vocab_size=vocabulary, d_model=32, n_heads=2, n_layers=1, max_seq_len=8)
    for model in (RobertaForCausalLM(of_roberta), MptForCausalLM(of_mpt)):
        view = ScoringView(model, TOKENIZER)
        assert view.max_length == 8
        assert view.next_token_dist(" ".join(["the"] * 8)).vocab_size == vocabulary
        with pytest.raises(ValueError, match="has 9 tokens; the model takes at most 8"):
            view.next_token_dist(" ".join(["the"] * 9))


def test_a_model_in_training_is_scored_without_dropout_and_stays_in_training() -> None:
    model = tiny_model().train()
    first = ScoringView(model, TOKENIZER).next_token_dist("the cat")
    assert model.training
    assert first == ScoringView(model, TOKENIZER).next_token_dist("the cat")


def test_two_models_under_one_name_never_share(store: lmemo.StoreBase) -> None:
    def score(model: Any, tokenizer: Any = TOKENIZER) -> tuple[bytes, int]:
        inst = BackendInstrumentation(store=store)
        dist = ScoringView(model, tokenizer, "base", inst).next_token_dist("the cat")
        return dist.logprobs.tobytes(), inst.stats.forward_passes

    first, second = tiny_model(1), tiny_model(2)
    value, passes = score(first)
    assert passes == 1
    assert score(first) == (value, 0)
    assert score(tiny_model(1)) == (value, 0), "the same weights are the same model"
    other_value, passes = score(second)
    assert passes == 1 and other_value != value
    assert score(first.to(torch.bfloat16))[1] == 1
    assert score(tiny_model(1, positions=32))[1] == 1
    assert score(tiny_model(1), tiny_tokenizer(adds_bos=True))[1] == 1


def test_weights_that_change_under_a_view_are_noticed() -> None:
    model = tiny_model()
    view = ScoringView(model, TOKENIZER)
    before = view.next_token_dist("the cat")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(input_ids=torch.tensor([[3, 4, 5]]), labels=torch.tensor([[3, 4, 5]])).loss.backward()
    optimizer.step()
    after = view.next_token_dist("the cat")
    assert before != after
    model.to(torch.float64)
    assert view.next_token_dist("the cat") != after
    assert view.instrumentation.stats.cache_hits == 0
    assert weights_digest(model) != weights_digest(tiny_model())


def test_adapters_are_told_apart() -> None:
    import peft

    torch.manual_seed(5)
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True)
    model = peft.get_peft_model(tiny_model(), config, adapter_name="one").eval()
    model.add_adapter("two", config)
    inst = BackendInstrumentation()
    view = ScoringView(model, TOKENIZER, "ft", inst)
    seen = {}
    for name in ("one", "two"):
        model.set_adapter(name)
        seen[name] = view.next_token_dist("the cat").logprobs.tobytes()
    with model.disable_adapter():
        seen["none"] = view.next_token_dist("the cat").logprobs.tobytes()
        assert isinstance(view.view_id, ModelView) and view.view_id.fields["adapter"] is None
    assert len(set(seen.values())) == 3 and inst.stats.cache_hits == 0
    model.set_adapter("one")
    assert view.next_token_dist("the cat").logprobs.tobytes() == seen["one"]
    assert inst.stats.cache_hits == 1
    model.merge_adapter()
    assert view.view_id.fields["adapter"] == "active one, merged one"


def test_the_caller_may_know_better() -> None:
    named = ModelView("base", model="mine", revision="7")
    view = ScoringView(tiny_model(), TOKENIZER, named)
    assert view.view_id is named
    weighed = ScoringView(tiny_model(), TOKENIZER, weights="step 100").view_id
    assert isinstance(weighed, ModelView) and weighed.fields["weights"] == "step 100"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "uint8", "bool", "complex64"])
def test_tensors_come_back_as_tensors(dtype: str) -> None:
    values = (torch.arange(-3, 9).reshape(3, 4) * 1.7).to(getattr(torch, dtype))
    for tensor in (values, values.T, values[:0], torch.tensor(2).to(values.dtype)):
        encoded = encode_value({"logits": tensor})
        assert encoded is not None
        back = decode_value(encoded)["logits"]
        assert type(back) is torch.Tensor and back.dtype == tensor.dtype and back.shape == tensor.shape
        assert torch.equal(back, tensor)
    assert encode_value(torch.nn.Parameter(torch.ones(2))) is None
    assert encode_value(torch.ones(2, requires_grad=True)) is None
    assert encode_value(torch.ones(2).to_sparse()) is None
    assert encode_value(torch.ones(2, device="meta")) is None
