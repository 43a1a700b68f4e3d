"""One thing changed in a tokenizer.json: the ids of HuggingFace, or a refusal. Never other ids.

Most of these load without complaint in other fast tokenizers and give other ids there.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent))

import tokenizer_texts as texts  # noqa: E402

import lmemo  # noqa: E402
from lmemo._core import NativeTokenizer  # noqa: E402

File = dict[str, Any]

SPECIAL = ["<s>", "</s>", "<tok>", "tok", "ToK", "[CLS]", "Ünï", "aa", "word", " lead"]
DOCUMENTS = texts.nasty(seed=3, special_tokens=SPECIAL)[::4]


def added(content: str, id: int = 1, **flags: bool) -> File:
    token = {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {**token, **flags}


def byte_characters() -> dict[int, str]:
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}


def grow(alphabet: list[str], corpus: str, count: int) -> tuple[dict[str, int], list[str]]:
    """A small BPE: merges that occur in the corpus, in order of the list."""
    vocab = {token: id for id, token in enumerate(alphabet)}
    merges: list[str] = []
    words = [list(word) for word in corpus.split(" ") if word]
    for _ in range(count):
        pairs: dict[tuple[str, str], int] = {}
        for word in words:
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(f"{left} {right}")
        vocab.setdefault(left + right, len(vocab))
        for word in words:
            at = 0
            while at + 1 < len(word):
                if word[at] == left and word[at + 1] == right:
                    word[at : at + 2] = [left + right]
                at += 1
    return vocab, merges


def file(model: File, **parts: Any) -> File:
    empty = dict.fromkeys(["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"])
    return {"version": "1.0", **empty, "added_tokens": [], "model": model, **parts}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def byte_level() -> File:
    shown = byte_characters()
    corpus = " ".join("".join(shown[byte] for byte in (" " + word).encode()) for text in texts.PROSE[:6] for word in text.split())
    vocab, merges = grow(sorted(shown.values()), corpus, 250)
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges}
    return file(model, pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL,
                added_tokens=[added("<s>", len(vocab), special=True), added("<tok>", len(vocab) + 1)])


def characters() -> list[str]:
    return ["<unk>", "▁", *sorted({c for text in texts.PROSE[:5] for c in text if c != " "} - set("dzäñé"))]


def sentence_piece() -> File:
    known = set(characters())  # Some letters are missing, to have something unknown.
    corpus = " ".join("▁" + word for text in texts.PROSE[:5] for word in text.split() if set(word) <= known)
    vocab, merges = grow(characters(), corpus, 200)
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": merges}
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    return file(model, normalizer=prepend, added_tokens=[added("<unk>", 0, special=True), added("<s>", len(vocab), special=True)])


def sentence_piece_by_metaspace() -> File:
    """As transformers 5 converts it, where the normalizer's work is Metaspace's."""
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    return {**sentence_piece(), "normalizer": None, "pre_tokenizer": metaspace}


def word_piece() -> File:
    words = sorted({word.lower() for text in texts.PROSE[:3] for word in text.split()})
    vocab = ["[UNK]", "[CLS]", "[SEP]", *"abcdefgh", *("##" + c for c in "abcdefghijklmnop"), *words, "##ing", "un", "##do", "##able"]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 20,
             "vocab": {token: id for id, token in enumerate(dict.fromkeys(vocab))}}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return file(model, normalizer=bert, pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
                added_tokens=[added("[CLS]", 1, special=True)])


def unigram() -> File:
    pieces = [[character, -6.25 - i * 0.37] for i, character in enumerate(characters())]
    pieces += [[word, -3.0 - i * 0.1234567890123456789] for i, word in enumerate(["▁the", "▁qu", "ick", "aa", "aaa", "▁a", "er", "ein", "en", "▁für"])]
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return file({"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}, pre_tokenizer=metaspace, decoder=metaspace)


def word_level() -> File:
    vocab = {word: id for id, word in enumerate(dict.fromkeys(["<unk>", *texts.PROSE[0].split(), "the", "a", "."]))}
    return file({"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}, pre_tokenizer={"type": "Whitespace"})


BASES: dict[str, Callable[[], File]] = {
    "byte level": byte_level, "sentence piece": sentence_piece, "by metaspace": sentence_piece_by_metaspace, "word piece": word_piece, "unigram": unigram, "word level": word_level,
}


def template(*single: str) -> File:
    parts = [{"Sequence": {"id": part, "type_id": 0}} if part in "AB" else {"SpecialToken": {"id": part, "type_id": 0}} for part in single]
    specials = {name: {"id": name, "ids": ids, "tokens": [name] * len(ids)} for name, ids in [("<s>", [7]), ("</s>", [8, 9])]}
    return {"type": "TemplateProcessing", "single": parts, "pair": [*parts, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": specials}


def split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> File:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps: File) -> File:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def padding(**changes: Any) -> File:
    usual = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 3, "pad_type_id": 0, "pad_token": "x"}
    return {**usual, **changes}


def truncation(**changes: Any) -> File:
    return {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0, **changes}


PLAIN_BYTES = {**BYTE_LEVEL, "use_regex": False}
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# Every base with each of these.
COMMON: dict[str, File] = {
    "as it is": {},
    "no pre-tokenizer": {"pre_tokenizer": None},
    "no normalizer": {"normalizer": None},
    "single word": {"added_tokens": [added("tok", single_word=True), added("aa", single_word=True), added("Ünï", single_word=True)]},
    "single word, normalized": {"added_tokens": [added("tok", single_word=True, normalized=True), added("word", single_word=True, normalized=True)]},
    "lstrip": {"added_tokens": [added("<tok>", lstrip=True)]},
    "rstrip": {"added_tokens": [added("<tok>", rstrip=True), added("tok", rstrip=True, lstrip=True)]},
    "strips, normalized": {"added_tokens": [added("<tok>", rstrip=True, normalized=True), added("tok", lstrip=True, rstrip=True, normalized=True)]},
    "everything at once": {"added_tokens": [added("tok", single_word=True, lstrip=True, rstrip=True, special=True), added(" lead", rstrip=True)]},
    "ids with gaps": {"added_tokens": [added("<tok>", 90_000), added("tok", 70_000), added("aa", 5)]},
    "normalized": {"added_tokens": [added("Ünï", normalized=True), added("ToK", normalized=True)]},
    "longest wins": {"added_tokens": [added("a"), added("aa"), added("aaa", special=True), added("<tok"), added("<tok>")]},
    "same token twice": {"added_tokens": [added("tok"), added("tok", lstrip=True), added("tok", special=True, rstrip=True)]},
    "special after normal": {"added_tokens": [added("tok", normalized=True), added("tok", special=True), added("TOK", normalized=True)]},
    "empty token": {"added_tokens": [added(""), added("tok")]},
    "blanks as tokens": {"added_tokens": [added(" "), added("  "), added("\n", rstrip=True), added("\t", special=True)]},
    "truncation": {"truncation": truncation()},
    "truncation from the left": {"truncation": truncation(direction="Left")},
    "truncation with stride": {"truncation": truncation(stride=2)},
    "truncation without direction": {"truncation": {"max_length": 4, "strategy": "OnlyFirst", "stride": 0}},
    "truncation of the second": {"truncation": truncation(strategy="OnlySecond")},
    "truncation to nothing": {"truncation": truncation(max_length=0)},
    "truncation with template": {"truncation": truncation(), "post_processor": template("<s>", "A", "</s>")},
    "truncation below the template": {"truncation": truncation(max_length=2), "post_processor": template("<s>", "A", "</s>")},
    "padding to the longest": {"padding": padding()},
    "padding on the left": {"padding": padding(direction="Left", pad_to_multiple_of=8)},
    "padding to a length": {"padding": padding(strategy={"Fixed": 6}), "truncation": truncation(max_length=4)},
    "padding to a multiple": {"padding": padding(strategy={"Fixed": 6}, pad_to_multiple_of=4)},
    "template": {"post_processor": template("<s>", "A", "</s>")},
    "template with the text twice": {"post_processor": template("A", "<s>", "A")},
    "template without the text": {"post_processor": template("<s>")},
    "template with a second text": {"post_processor": template("A", "B")},
    "template after template": {"post_processor": {"type": "Sequence", "processors": [template("<s>", "A"), template("</s>", "A")]}},
    "byte level after template": {"post_processor": {"type": "Sequence", "processors": [template("<s>", "A"), BYTE_LEVEL]}},
    "bert processing": {"post_processor": {"type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1]}},
    "bert after template": {"post_processor": {"type": "Sequence", "processors": [template("<s>", "A"), {"type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1]}]}},
    "roberta processing": {"post_processor": {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1], "trim_offsets": True, "add_prefix_space": False}},
    "lowercase": {"normalizer": {"type": "Lowercase"}},
    "NFC": {"normalizer": {"type": "NFC"}, "added_tokens": [added("Ünï", normalized=True), added("é")]},
    "NFKC": {"normalizer": {"type": "NFKC"}},
    "prepend": {"normalizer": {"type": "Prepend", "prepend": "▁"}, "added_tokens": [added("tok", normalized=True), added("<tok>")]},
    "strip": {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}},
    "replace": {"normalizer": {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}},
    "digits first": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, BYTE_LEVEL)},
    "split and byte level's own regex": {"pre_tokenizer": sequence(split(CL100K), BYTE_LEVEL)},
    "split": {"pre_tokenizer": sequence(split(CL100K), PLAIN_BYTES)},
    "another split": {"pre_tokenizer": sequence(split(r"[a-z]+|\d{2}|\s"), PLAIN_BYTES)},
    "split, removed": {"pre_tokenizer": sequence(split(r"\s+", "Removed"), PLAIN_BYTES)},
    "split, inverted": {"pre_tokenizer": sequence(split(r"\w+|[^\w\s]+", "Removed", True), PLAIN_BYTES)},
    "split, merged": {"pre_tokenizer": sequence(split(r" ", "MergedWithNext"), PLAIN_BYTES)},
    "split at an empty regex": {"pre_tokenizer": sequence(split(""), PLAIN_BYTES)},
    "prefix space": {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}},
    "metaspace first": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}, "normalizer": None,
                        "added_tokens": [added("<tok>"), added("tok", normalized=True)]},
    "metaspace first, without split": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}},
    "metaspace always, without split": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}, "normalizer": None,
                                        "added_tokens": [added("<tok>", lstrip=True), added("tok", normalized=True), added("\n"), added("word", single_word=True)]},
    "metaspace never": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True}},
    "metaspace never, without split": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False}, "normalizer": None},
    "metaspace first after a cut": {"normalizer": None, "pre_tokenizer": sequence({"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True})},
    "metaspace first after strip": {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": False},
                                    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}},
    "a part nobody knows": {"pre_tokenizer": {"type": "Astrology"}},
    "a key nobody knows": {"horoscope": 3},
}

REFUSED = {"a part nobody knows", "template with a second text", "truncation of the second", "truncation to nothing", "truncation below the template",
           "a key nobody knows"}
# Those that only some bases refuse, where the normalizer makes the difference.
REFUSED_SOMETIMES = {"special after normal"}

# Base, and what changes in its model.
OF_MODELS: list[tuple[str, str, File]] = [
    ("byte level", "ignore merges", {"ignore_merges": True}),
    ("byte level", "unk but no byte level", {"unk_token": "Ġ"}),
    ("byte level", "unk that is no token", {"unk_token": "nowhere"}),
    ("byte level", "dropout", {"dropout": 0.1}),
    ("byte level", "no dropout", {"dropout": 0.0}),
    ("byte level", "prefix", {"continuing_subword_prefix": "Ġ"}),
    ("byte level", "suffix", {"end_of_word_suffix": "e"}),
    ("sentence piece", "no byte fallback", {"byte_fallback": False}),
    ("sentence piece", "unknown not fused", {"byte_fallback": False, "fuse_unk": False}),
    ("sentence piece", "no unk", {"byte_fallback": False, "unk_token": None}),
    ("by metaspace", "no byte fallback", {"byte_fallback": False}),
    ("by metaspace", "ignore merges", {"ignore_merges": True}),
    ("sentence piece", "no type", {"type": None}),
    ("word piece", "other prefix", {"continuing_subword_prefix": ""}),
    ("word piece", "short words", {"max_input_chars_per_word": 3}),
    ("word piece", "missing unk", {"unk_token": "nowhere"}),
    ("unigram", "no unk", {"unk_id": None}),
    ("unigram", "other unk", {"unk_id": 20}),
    ("unigram", "byte fallback without bytes", {"byte_fallback": True}),
    ("word level", "missing unk", {"unk_token": "nowhere"}),
]


def outcome(encode: Callable[[], Any]) -> Any:
    """The answer, or that there was none. HuggingFace may even panic."""
    try:
        return encode()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "an error"


def compare(content: File) -> str:
    """"same", "refused" or "HF refused"; fails on a difference."""
    text = json.dumps(content)
    try:
        huggingface = tokenizers.Tokenizer.from_str(text)
    except BaseException:  # It panics on some.
        with pytest.raises((lmemo.InvalidArgument, lmemo.Incompatible)):
            NativeTokenizer.from_json(text)
        return "HF refused"
    try:
        ours = lmemo.Tokenizer(NativeTokenizer.from_json(text))
    except (lmemo.InvalidArgument, lmemo.Incompatible) as refusal:
        assert "tokenizer.json, " in str(refusal), refusal
        return "refused"
    documents = DOCUMENTS
    for special in (True, False):
        for document in documents:
            expected = outcome(lambda: huggingface.encode(document, add_special_tokens=special).ids)
            assert outcome(lambda: ours.encode(document, special).tolist()) == expected, (special, document)
    few = documents[:40]
    expected = outcome(lambda: [encoding.ids for encoding in huggingface.encode_batch(few)])
    assert outcome(lambda: [ids.tolist() for ids in ours.encode_batch(few)]) == expected
    compare_tokens(huggingface, ours)
    return "same"


def compare_tokens(huggingface: Any, ours: lmemo.Tokenizer) -> None:
    """The way back from ids, first of all of added tokens."""
    added_tokens = huggingface.get_added_tokens_decoder()
    for id in added_tokens:
        assert ours.id_to_token(id) == huggingface.id_to_token(id)
    for token in added_tokens.values():
        assert ours.token_to_id(token.content) == huggingface.token_to_id(token.content)
    ids = [*added_tokens, *range(0, huggingface.get_vocab_size(), 7), *added_tokens]
    for skip in (True, False):
        expected = outcome(lambda: huggingface.decode(ids, skip_special_tokens=skip))
        assert outcome(lambda: ours.decode(ids, skip)) == expected
    assert ours.vocab_size == huggingface.get_vocab_size()


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("change", COMMON)
def test_change(base: str, change: str) -> None:
    content = {**BASES[base](), **copy.deepcopy(COMMON[change])}
    expected = {"refused", "HF refused"} if change in REFUSED else {"same"}
    assert compare(content) in expected | ({"refused"} if change in REFUSED_SOMETIMES else set())


@pytest.mark.parametrize(("base", "name", "change"), OF_MODELS, ids=[f"{base}: {name}" for base, name, _ in OF_MODELS])
def test_change_of_the_model(base: str, name: str, change: File) -> None:
    content = BASES[base]()
    content["model"].update(change)
    content["model"] = {key: value for key, value in content["model"].items() if key != "type" or value}
    compare(content)


BLANK_MARKS = {"type": "Metaspace", "replacement": "▁"}
INCOMPLETE: list[File] = [
    *({part: {"type": "ByteLevel", "add_prefix_space": True}} for part in ("pre_tokenizer", "post_processor", "decoder")),
    *({part: {**BYTE_LEVEL, "use_regex": None}} for part in ("pre_tokenizer", "post_processor", "decoder")),
    *({"post_processor": {**template("<s>", "A"), "special_tokens": {"<s>": token}}}
      for token in ({"ids": [7], "tokens": ["<s>"]}, {"id": "<s>", "ids": [7]}, {"id": "<s>", "ids": [7], "tokens": [7]}, {"id": "<s>", "ids": 7, "tokens": []})),
    {"decoder": {**BLANK_MARKS, "prepend_scheme": None}},
    {"decoder": {"type": "Replace", "pattern": {"String": "a", "horoscope": 0}, "content": ""}},
    {"truncation": truncation(direction=None)},
    {"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 0, "byte_fallback": None}},
    {"added_tokens": None},
    {"version": None},
]  # fmt: skip


@pytest.mark.parametrize("change", INCOMPLETE, ids=str)
def test_what_huggingface_refuses_is_refused(change: File) -> None:
    assert compare({**word_level(), **change}) == "HF refused"


def test_a_prefix_of_nothing_is_refused() -> None:
    """HuggingFace loses count of its characters, and panics in the step behind, or doubles the first one."""
    assert compare({**byte_level(), "normalizer": {"type": "Prepend", "prepend": ""}}) == "refused"


@pytest.mark.parametrize("pattern", [{"String": ""}, {"Regex": "^"}, {"Regex": "[ab]*"}, {"Regex": r"(?=\p{L})|x"}], ids=str)
def test_what_is_put_in_where_nothing_was_is_refused(pattern: File) -> None:
    """The same happens there."""
    replace = {"type": "Replace", "pattern": pattern, "content": "x"}
    assert compare({**byte_level(), "normalizer": replace}) == "refused"
    assert compare({**byte_level(), "normalizer": {**replace, "content": ""}}) == "same"


@pytest.mark.parametrize("as_pairs", [False, True])
def test_merges_that_are_not_in_order_of_ids(as_pairs: bool) -> None:
    content = byte_level()
    merges = content["model"]["merges"]
    content["model"]["merges"] = merges[::-1]
    if as_pairs:
        content["model"]["merges"] = [merge.split(" ") for merge in merges[::-1]]
    assert compare(content) == "same"


def test_merges_twice() -> None:
    content = byte_level()
    content["model"]["merges"] += content["model"]["merges"][:40]
    assert compare(content) == "same"


def test_model_ids_with_gaps() -> None:
    content = byte_level()
    content["model"]["vocab"] = {token: id * 3 for token, id in content["model"]["vocab"].items()}
    assert compare(content) == "same"


def test_what_is_said_last_about_a_token_counts() -> None:
    content = {**word_piece(), "added_tokens": [added("tok", normalized=True), added("tok", special=True)]}
    assert compare(content) == "same"
    content["added_tokens"].append(added("tok", normalized=True, lstrip=True))
    assert compare(content) == "same"


def test_tokens_that_are_the_same_once_normalized_are_refused() -> None:
    """HuggingFace keeps them in a hash map and takes another one in every process."""
    content = {**word_piece(), "added_tokens": [added("tok", normalized=True), added("TOK", normalized=True)]}
    assert compare(content) == "refused"


def test_an_added_token_that_takes_the_id_of_another() -> None:
    content = {**word_level(), "pre_tokenizer": None, "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "x": 1, "aa": 4, "y": 2}}}
    for tokens in (["tok", "aa"], ["aa", "tok"], ["tok", "aa", "tok"]):
        assert compare({**content, "added_tokens": [added(token) for token in tokens]}) == "same"


@pytest.mark.parametrize("is_normalized", [False, True])
def test_the_normalized_text_of_a_token_whose_id_is_taken_stays(is_normalized: bool) -> None:
    content = {**word_level(), "normalizer": {"type": "Lowercase"}, "pre_tokenizer": None,
               "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "x": 1, "aa": 4, "y": 2}}}
    assert compare({**content, "added_tokens": [added("ToK", normalized=True), added("aa", normalized=is_normalized)]}) == "same"
