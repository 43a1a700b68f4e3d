"""ActivationExtractor: the states a transformers model computes, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from activation_fixtures import fresh_cache  # noqa: F401
from activation_models import Passes, extractor_of, prompts_of, twelve_layers
from tiny_models import WORDS, tiny_model, tiny_tokenizer

from lmemo import activations
from lmemo.activations import ActivationExtractor, CachedExtractor, weights_digest


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("model")
    twelve_layers().save_pretrained(directory)
    tiny_tokenizer().save_pretrained(directory)
    return str(directory)


def hidden_states(model: Any, prompts: list[str]) -> Any:
    """As transformers gives them: the embeddings, then the output of every block, the last one behind the final norm."""
    inputs = tiny_tokenizer()(prompts, return_tensors="pt", padding=True)
    with torch.inference_mode():
        return model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], output_hidden_states=True).hidden_states


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_layer_is_the_output_of_its_block(kind: str) -> None:
    model, prompts = tiny_model(kind=kind), prompts_of(5)
    states, mask = ActivationExtractor(model, tokenizer=tiny_tokenizer(), batch_size=8).extract(prompts)
    expected = hidden_states(model, prompts)
    assert states.shape == (5, mask.shape[1], 2 * 32)
    assert torch.equal(states[..., :32], expected[1])
    norm = model.transformer.ln_f if kind == "gpt2" else model.model.norm
    with torch.inference_mode():
        assert torch.equal(norm(states[..., 32:]), expected[2])


def test_an_encoder_works_too() -> None:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model = BertModel(
        BertConfig(vocab_size=len(WORDS) + 3, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64)
    ).eval()
    states, _ = ActivationExtractor(model, tokenizer=tiny_tokenizer(), layers=[0, 2], batch_size=8).extract(prompts_of(4))
    expected = hidden_states(model, prompts_of(4))
    assert torch.equal(states, torch.cat([expected[1], expected[3]], dim=-1))


def test_layers_are_chosen_by_name_number_or_list() -> None:
    model = twelve_layers()
    for layers, chosen in [
        ("all", list(range(12))), ("last", [11]), ("middle", [4, 5, 6, 7]), (3, [3]), (-1, [11]), ([0, -2, 5], [0, 10, 5]), (range(2, 4), [2, 3])
    ]:  # fmt: skip
        extractor = extractor_of(model, layers=layers)
        assert extractor.layer_indices == chosen and extractor.num_layers == len(chosen)
    for layers, words in [(12, "out of range"), (-13, "out of range"), ([0, 40], "out of range"), ("some", "Unknown layer specification")]:
        with pytest.raises(ValueError, match=words):
            extractor_of(model, layers=layers).layer_indices  # noqa: B018
    # Columns come in the order of the layers.
    both = CachedExtractor(extractor_of(model, layers=[7, 2])).extract(prompts_of(3))
    second, mask = extractor_of(model, layers=[2]).extract(prompts_of(3))
    assert both is not None and torch.equal(both[0][..., 16:], second * mask.unsqueeze(-1))


def test_wrong_options_are_refused() -> None:
    for options in ({"batch_size": 0}, {"weights": "some"}, {"pooling": "median"}):
        with pytest.raises(ValueError):
            ActivationExtractor("gpt2", **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="remote"):
        extractor_of(twelve_layers()).extract_batch(["the cat"], [0], remote=True)


def test_the_model_and_its_tokenizer_are_left_as_they_were() -> None:
    model, tokenizer = twelve_layers(), tiny_tokenizer()
    model.train()
    tokenizer.padding_side = "left"
    states, mask = ActivationExtractor(model, tokenizer=tokenizer, layers=[0], batch_size=4).extract(["the cat sat", "a"])
    assert model.training and tokenizer.padding_side == "left"
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]  # Padded on the right whatever the tokenizer's side.
    assert not any(module._forward_hooks for module in model.modules())
    model.eval()
    again, _ = ActivationExtractor(model, tokenizer=tokenizer, layers=[0], batch_size=4).extract(["the cat sat", "a"])
    assert torch.equal(states, again)  # Without dropout, though the model was in training.


def test_batches_and_dtype_by_directory(saved: str) -> None:
    prompts = prompts_of(10)
    extractor = ActivationExtractor(saved, device="cpu", layers="last", batch_size=4, dtype="bfloat16")
    passes = Passes(extractor.model)
    result = CachedExtractor(extractor).extract(prompts)
    assert result is not None and result[0].dtype == torch.bfloat16 and passes.passes == 3
    assert activations.discover_cached(extractor.model_name, prompts[0]).dtypes == ["bfloat16"]  # type: ignore[union-attr]
    again = CachedExtractor(ActivationExtractor(saved, device="cpu", layers="last", dtype=torch.bfloat16)).extract(prompts)
    assert again is not None and torch.equal(again[0], result[0])


def test_identity_has_all_that_tells_models_apart(saved: str, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    quantized = twelve_layers()
    quantized.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    plain = ActivationExtractor(saved, device="cpu").model_name
    assert plain == saved and set(plain.fields) == {"dtype", "weights", "tokenizer"}
    identities = [
        plain,
        ActivationExtractor(saved, device="cpu", dtype="float16").model_name,
        ActivationExtractor(saved, device="cpu", revision="main").model_name,
        ActivationExtractor(saved, device="cpu", max_length=9).model_name,
        ActivationExtractor(saved, device="cpu", weights="full").model_name,
        ActivationExtractor(saved, device="cpu", tokenizer=tiny_tokenizer(adds_bos=True)).model_name,
        ActivationExtractor(quantized, tokenizer=tiny_tokenizer(), name=saved).model_name,
        ActivationExtractor(get_peft_model(twelve_layers(), LoraConfig(target_modules=["c_attn"])), tokenizer=tiny_tokenizer(), name=saved).model_name,
    ]
    for number, identity in enumerate(identities):
        assert all(identity != other for other in identities[number + 1 :]), identity
    assert identities[-1].fields["adapter"] == "default" and "load_in_4bit" in str(identities[-2].fields["quantization"])
    # One of them stored: `explain` names the field for each of the others.
    activations.save_prompt_activations(plain, "p", [0], torch.randn(1, 2, 4), torch.ones(1, 2))
    for identity, field in zip(identities[1:6], ["dtype", "revision", "max_length", "weights", "tokenizer"], strict=True):
        assert field in activations.explain(identity, "p", 0)
        assert activations.discover_cached(identity, "p") is None


def test_other_weights_under_the_same_path_are_a_miss(tmp_path: Path) -> None:
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    digests = []
    for seed in (0, 1, 0):
        twelve_layers(seed).save_pretrained(tmp_path / "model")
        extractor = ActivationExtractor(tmp_path / "model", device="cpu", layers=[0], batch_size=4)
        passes = Passes(extractor.model)
        CachedExtractor(extractor).extract(["the cat", "a dog"], cache_only=True)
        digests.append((extractor.model_name.fields["weights"], passes.passes))
    assert digests[0][0] == digests[2][0] != digests[1][0]
    assert [passes for _, passes in digests] == [1, 1, 0]


def lora() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=2, target_modules=["c_attn"], init_lora_weights=False)


def test_an_adapter_that_was_trained_again_in_the_same_place_is_a_miss(saved: str, tmp_path: Path) -> None:
    from peft import get_peft_model

    for seed in (0, 1):
        torch.manual_seed(seed)
        get_peft_model(twelve_layers(), lora()).save_pretrained(tmp_path)
        extractor = ActivationExtractor(saved, device="cpu", adapter=str(tmp_path), dtype="float32")
        stored = CachedExtractor(extractor).extract(["the cat"])
        assert stored is not None and torch.equal(stored[0], extractor.extract(["the cat"])[0])


def test_adapters_that_are_switched_are_models_of_their_own() -> None:
    from peft import get_peft_model

    model = get_peft_model(twelve_layers(), lora(), adapter_name="one")
    model.add_adapter("two", lora())
    extractor = ActivationExtractor(model, tokenizer=tiny_tokenizer(), name="tuned")

    def states() -> Any:
        stored = CachedExtractor(extractor).extract(["the cat"])
        assert stored is not None and torch.equal(stored[0], extractor.extract(["the cat"])[0])
        return stored[0]

    seen = [states()]
    model.set_adapter("two")
    seen.append(states())
    with model.disable_adapter():
        seen.append(states())
        assert "adapter" not in extractor.model_name.fields
    model.set_adapter("one")
    assert torch.equal(states(), seen[0]) and extractor.model_name.fields["adapter"] == "one"
    assert all(not torch.equal(one, other) for number, one in enumerate(seen) for other in seen[number + 1 :])


def test_a_full_digest_sees_every_byte_of_the_files(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(bytes(4_000_000))
    sampled, full = weights_digest(tmp_path), weights_digest(tmp_path, full=True)
    data = bytearray(4_000_000)
    data[30_000] = 1  # Between two samples.
    file.write_bytes(data)
    assert weights_digest(tmp_path) == sampled and weights_digest(tmp_path, full=True) != full
    data[0] = 1
    file.write_bytes(data)
    assert weights_digest(tmp_path) != sampled
    with pytest.raises(FileNotFoundError):
        weights_digest(tmp_path / "nothing")


# ------------------------------------------------------------------------------------------------------ which dtype it is


def save(dtype: str, prompt: str = "p") -> Any:
    activations.set_cache_dtype(dtype)
    states = torch.randn(1, 3, 8)
    activations.save_prompt_activations("m", prompt, [0], states, torch.ones(1, 3))
    activations.save_prompt_pooled_activations("m", prompt, [0], states[:, 0], "mean")
    return states


def test_what_comes_back_says_in_which_dtype_it_was_stored() -> None:
    half = save("float16")
    activations.set_cache_dtype("float32")  # Not there: the tensor says what it is, and is not passed off as float32.
    assert activations.load_prompt_layer("m", "p", 0).dtype == torch.float16
    assert activations.load_prompt_activations("m", "p", [0])[0].dtype == torch.float16
    assert activations.load_prompt_pooled_activations("m", "p", [0], "mean").dtype == torch.float16
    assert activations.discover_cached("m", "p").dtypes == ["float16"]  # type: ignore[union-attr]
    wide = save("float32")
    for wanted, expected in [("float32", wide), ("float16", half.half()), (None, wide), ("bfloat16", wide)]:
        activations.set_cache_dtype(wanted)
        loaded = activations.load_prompt_layer("m", "p", 0)
        assert loaded.dtype == expected.dtype and torch.equal(loaded, expected)
    assert activations.discover_cached("m", "p").dtypes == ["float16", "float32"]  # type: ignore[union-attr]


def test_two_dtypes_are_not_mixed_in_one_tensor() -> None:
    save("float16", "a")
    save("float32", "b")
    for load in (lambda: activations.load_layer_last_token("m", ["a", "b"], 0), lambda: activations.load_pooled_batch("m", ["a", "b"], [0], "mean")):
        with pytest.raises(ValueError, match="different dtypes"):
            load()
    save("float32", "a")
    assert activations.load_layer_last_token("m", ["a", "b"], 0).dtype == torch.float32


def families() -> dict[str, Callable[[], Any]]:
    sizes: dict[str, Any] = {"vocab_size": len(WORDS) + 3, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    llama = {**sizes, "num_key_value_heads": 2, "max_position_embeddings": 64}
    coded: dict[str, Any] = {"vocab_size": len(WORDS) + 3, "d_model": 16, "pad_token_id": 0}
    of_t5 = {**coded, "num_layers": 3, "num_heads": 2, "d_ff": 32, "d_kv": 8}
    of_bart = {**coded, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32}
    seen = {**sizes, "image_size": 8, "patch_size": 4, "projection_dim": 16}
    seen.pop("vocab_size")
    return {
        "shared weights": lambda: tf.AlbertModel(tf.AlbertConfig(**sizes, embedding_size=8)),
        "tokens before prompts": lambda: tf.XLNetModel(tf.XLNetConfig(vocab_size=len(WORDS) + 3, d_model=16, n_layer=3, n_head=2, d_inner=32)),
        "encoder and decoder, T5": lambda: tf.T5ForConditionalGeneration(tf.T5Config(**of_t5)),
        "encoder and decoder, BART": lambda: tf.BartModel(tf.BartConfig(**of_bart)),
        "as many layers for images": lambda: tf.LlavaForConditionalGeneration(
            tf.LlavaConfig(vision_config=tf.CLIPVisionConfig(**seen), text_config=tf.LlamaConfig(**llama), image_token_index=5)
        ),
        "encoder alone": lambda: tf.BertModel(tf.BertConfig(**sizes)),
        "experts": lambda: tf.MixtralForCausalLM(tf.MixtralConfig(**llama, num_local_experts=2)),
    }


@pytest.mark.parametrize("family", families())
def test_models_of_every_build_give_the_outputs_of_their_layers(family: str) -> None:
    torch.manual_seed(0)
    model = families()[family]().eval()
    extractor = ActivationExtractor(model, tokenizer=tiny_tokenizer(), layers="all", name=family)
    prompts = [WORDS[0], f"{WORDS[1]} {WORDS[2]} {WORDS[3]}", WORDS[4]]  # As many as tokens in the longest.
    direct, mask = extractor.extract(prompts)
    assert extractor.layer_indices == [0, 1, 2] and direct.shape == (3, 3, 48)
    inputs = tiny_tokenizer()(prompts, return_tensors="pt", padding=True)
    run = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.inference_mode():
        states = run(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], output_hidden_states=True).hidden_states
    for layer in (0, 1):  # Behind the last one some have a norm.
        expected = states[layer + 1] * mask.unsqueeze(-1)
        assert torch.allclose(direct[..., layer * 16 : (layer + 1) * 16] * mask.unsqueeze(-1), expected, atol=1e-5)
    for _ in range(2):
        stored, its_mask = CachedExtractor(extractor).extract(prompts)  # type: ignore[misc]
        assert torch.allclose(stored, direct * mask.unsqueeze(-1), atol=1e-5) and torch.equal(its_mask, mask)


def test_a_model_whose_layers_cannot_be_told_apart_is_refused_in_words() -> None:
    funnel = tf.FunnelModel(tf.FunnelConfig(vocab_size=len(WORDS) + 3, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=32))
    with pytest.raises(ValueError, match="does not run its 2 layers one by one"):
        ActivationExtractor(funnel.eval(), tokenizer=tiny_tokenizer(), name="funnel").extract([" ".join(WORDS[:6])])
