"""Every real vocabulary gives HuggingFace's ids, text for text: not one may differ."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

pytest.importorskip("tokenizers")

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import tokenizer_texts as texts  # noqa: E402
import tokenizer_vocabularies as vocabularies  # noqa: E402

import lmemo  # noqa: E402

NAMES = vocabularies.names()


def test_vocabularies_are_there() -> None:
    """Counts them, so that a machine without the folder does not look as if parity had been proven."""
    print(f"{len(NAMES)} vocabularies in {vocabularies.folder()}")
    if not NAMES:
        pytest.skip(f"0 vocabularies: {vocabularies.folder()} is not there; set LMEMO_TOKENIZERS. Parity was NOT tested")
    assert len(NAMES) >= 10


def first_difference(expected: list[int], found: list[int]) -> str:
    at = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b), min(len(expected), len(found)))
    return f"at {at}: expected {expected[at : at + 6]}, found {found[at : at + 6]} ({len(expected)} and {len(found)} ids)"


def assert_same(name: str, documents: list[str]) -> None:
    ours = lmemo.Tokenizer.from_str(vocabularies.json_of(name))
    assert ours.engine != "huggingface"
    assert_agree(vocabularies.huggingface(name), ours, documents)


def assert_agree(huggingface: Any, ours: lmemo.Tokenizer, documents: list[str]) -> None:
    for special in (True, False):
        expected = [encoding.ids for encoding in huggingface.encode_batch(documents, add_special_tokens=special)]
        found = ours.encode_batch(documents, add_special_tokens=special, threads=2)
        assert len(found) == len(documents)
        different = [i for i, ids in enumerate(expected) if ids != found[i].tolist()]
        report = [f"{documents[i][:200]!r} {first_difference(expected[i], found[i].tolist())}" for i in different[:5]]
        assert not different, f"{len(different)} of {len(documents)} differ, special={special}:\n" + "\n".join(report)
        for i in random.Random(1).sample(range(len(documents)), min(300, len(documents))):
            for skip in (True, False):
                assert ours.decode(expected[i], skip) == huggingface.decode(expected[i], skip_special_tokens=skip)
    for document in documents[:: max(1, len(documents) // 50)]:  # One at a time is another way through padding.
        assert ours.encode(document).tolist() == huggingface.encode(document).ids, document


@pytest.mark.parametrize("name", NAMES)
def test_prose_and_sources(name: str) -> None:
    documents = [text for _, text in texts.corpus()] + [text for _, text in texts.sources()] + texts.PROSE
    assert_same(name, documents)


@pytest.mark.parametrize("name", NAMES)
def test_nasty_inputs(name: str) -> None:
    added = vocabularies.huggingface(name).get_added_tokens_decoder()
    assert_same(name, texts.nasty(seed=NAMES.index(name), special_tokens=[token.content for token in added.values()]))


@pytest.mark.parametrize("options", [{}, {"legacy": True}, {"add_prefix_space": False}], ids=["first", "always", "never"])
@pytest.mark.parametrize("name", [name for name in NAMES if name in ("llama2", "mistral-v3")])
def test_as_transformers_converts_it(name: str, options: dict[str, bool]) -> None:
    """Of the file it keeps the model and the added tokens; Metaspace does the work of the normalizer."""
    transformers = pytest.importorskip("transformers")
    file = json.loads(vocabularies.json_of(name))
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in file["model"]["merges"]]
    converted = transformers.LlamaTokenizer(vocab=file["model"]["vocab"], merges=merges, **options)
    converted.add_special_tokens({"additional_special_tokens": [token["content"] for token in file["added_tokens"]]})
    converted.add_tokens(["tok", "\n\n"])
    huggingface = converted.backend_tokenizer
    metaspace = json.loads(huggingface.to_str())["pre_tokenizer"]
    assert (metaspace["type"], metaspace["split"]) == ("Metaspace", False)
    ours = lmemo.Tokenizer.from_hf(converted)
    assert ours.engine == "fast"
    documents = [text for _, text in texts.corpus()] + [text for _, text in texts.sources()] + texts.PROSE
    added = huggingface.get_added_tokens_decoder()
    documents += texts.nasty(seed=len(NAMES), special_tokens=[token.content for token in added.values()])
    assert_agree(huggingface, ours, documents)


@pytest.mark.parametrize("name", NAMES)
def test_look_ups(name: str) -> None:
    huggingface = vocabularies.huggingface(name)
    ours = lmemo.Tokenizer.from_str(vocabularies.json_of(name))
    assert ours.vocab_size == huggingface.get_vocab_size()
    for token, id in huggingface.get_vocab().items():
        assert ours.token_to_id(token) == id
        assert ours.id_to_token(id) == huggingface.id_to_token(id)
    assert ours.id_to_token(4_000_000_000) is None and ours.token_to_id("no such token!") is None
