"""lmemo.Tokenizer as its users meet it: kinds of texts, lengths, model directories, tiktoken files, the engine behind."""

from __future__ import annotations

import base64
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

pyarrow = pytest.importorskip("pyarrow")
tokenizers = pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent))

import tokenizer_texts as texts  # noqa: E402
import tokenizer_vocabularies as vocabularies  # noqa: E402
from tokenizer_traps_test import byte_level, word_piece  # noqa: E402

import lmemo  # noqa: E402
from lmemo._huggingface import HuggingFaceEngine  # noqa: E402

TEXTS = ["Hello, world", "", "été 漢字", "a", "it's 12345 " * 9]


def bert() -> dict[str, Any]:
    template = {
        "type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0],
    }  # fmt: skip
    return {**word_piece(), "post_processor": template}


@pytest.fixture(scope="module")
def tokenizer() -> lmemo.Tokenizer:
    return lmemo.Tokenizer.from_str(json.dumps(byte_level()))


def ids_of(batch: lmemo.TokenBatch) -> list[list[int]]:
    return [ids.tolist() for ids in batch]


# ---------------------------------------------------------------------------------------------------- kinds of texts


def test_lists_generators_and_numpy_arrays_give_the_same(tokenizer: lmemo.Tokenizer) -> None:
    expected = [tokenizer.encode(text).tolist() for text in TEXTS]
    for given in (
        TEXTS,
        tuple(TEXTS),
        (text for text in TEXTS),
        [text.encode() for text in TEXTS],
        numpy.array(TEXTS),
        numpy.array(TEXTS, dtype=object),
        numpy.array([text.encode() for text in TEXTS]),
    ):
        assert ids_of(tokenizer.encode_batch(given)) == expected
    assert len(tokenizer.encode_batch([])) == 0
    assert len(tokenizer.encode_batch(numpy.array([], dtype=str))) == 0


@pytest.mark.parametrize("wrong", ["a text", b"bytes", [1], [None], [["a"]], 5, numpy.array([["a"]])], ids=repr)
def test_what_holds_no_texts_is_a_type_error(tokenizer: lmemo.Tokenizer, wrong: Any) -> None:
    with pytest.raises(TypeError):
        tokenizer.encode_batch(wrong)


def test_columns_of_arrow_are_read_where_they_lie(tokenizer: lmemo.Tokenizer) -> None:
    pa = pytest.importorskip("pyarrow")
    expected = [tokenizer.encode(text).tolist() for text in TEXTS]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int8(), pa.string()),
                 pa.dictionary(pa.uint32(), pa.large_string())):  # fmt: skip
        values = [text.encode() for text in TEXTS] if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else TEXTS
        plain = pa.array(["front", *TEXTS, "back"]) if values is TEXTS else pa.array([b"front", *values, b"back"])
        padded = plain.cast(kind) if not pa.types.is_dictionary(kind) else plain.dictionary_encode().cast(kind)
        whole = padded.slice(1, len(TEXTS))  # With an offset.
        assert ids_of(tokenizer.encode_batch(whole)) == expected, kind
        chunked = pa.chunked_array([whole.slice(0, 2), whole.slice(2, 0), whole.slice(2)])
        assert ids_of(tokenizer.encode_batch(chunked)) == expected, kind
        assert ids_of(tokenizer.encode_batch(pa.table({"text": whole}))) == expected, kind
    assert len(tokenizer.encode_batch(pa.array([], pa.string()))) == 0
    with pytest.raises(ValueError, match="text 1 is null"):
        tokenizer.encode_batch(pa.array(["a", None, "b"]))
    with pytest.raises(TypeError, match="expected strings"):
        tokenizer.encode_batch(pa.array([1, 2]))
    with pytest.raises(TypeError, match="2 columns"):
        tokenizer.encode_batch(pa.table({"a": ["x"], "b": ["y"]}))
    column = pa.array(["some text that is longer than twelve bytes"] * 1000)
    before = pa.total_allocated_bytes()
    for _ in range(50):
        tokenizer.encode_batch(pa.chunked_array([column]))
    assert pa.total_allocated_bytes() == before


# ------------------------------------------------------------------------------------------------------------ lengths

TRUNCATIONS: list[dict[str, Any] | None] = [
    None, {"max_length": 3}, {"max_length": 2}, {"max_length": 7, "stride": 2}, {"max_length": 5, "direction": "left"}, {"max_length": 4, "strategy": "only_first"},
]  # fmt: skip
PADDINGS: list[dict[str, Any] | None] = [
    None, {}, {"length": 6}, {"length": 0}, {"pad_to_multiple_of": 4}, {"length": 9, "pad_to_multiple_of": 4, "pad_id": 7, "direction": "left"}, {"direction": "left", "pad_id": 3},
]  # fmt: skip


@pytest.mark.parametrize("in_file", [False, True], ids=["plain file", "lengths in the file"])
def test_truncation_and_padding_are_those_of_huggingface(in_file: bool) -> None:
    for content in (bert(), byte_level()):
        if in_file:
            content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
            content["padding"] = {"strategy": {"Fixed": 5}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 2, "pad_type_id": 0, "pad_token": "x"}
        text = json.dumps(content)
        ours, fallback = lmemo.Tokenizer.from_str(text), lmemo.Tokenizer(HuggingFaceEngine(text))
        for truncation, padding in itertools.product(TRUNCATIONS, PADDINGS):
            theirs = tokenizers.Tokenizer.from_str(text)
            theirs.no_truncation() if truncation is None else theirs.enable_truncation(**truncation)
            theirs.no_padding() if padding is None else theirs.enable_padding(**padding)
            lengths: dict[str, Any] = {
                "truncation": False if truncation is None else lmemo.Truncation(**truncation),
                "padding": False if padding is None else lmemo.Padding(**padding),
            }
            for special in (True, False):
                expected = [encoding.ids for encoding in theirs.encode_batch(TEXTS, add_special_tokens=special)]
                for engine in (ours, fallback):
                    assert ids_of(engine.encode_batch(TEXTS, special, **lengths)) == expected, (engine, truncation, padding)
                    assert engine.encode(TEXTS[0], special, **lengths).tolist() == theirs.encode(TEXTS[0], add_special_tokens=special).ids
        # What was given to one call is over with it.
        plain = [encoding.ids for encoding in tokenizers.Tokenizer.from_str(text).encode_batch(TEXTS)]
        assert ids_of(ours.encode_batch(TEXTS)) == ids_of(fallback.encode_batch(TEXTS)) == plain


def test_settings_of_a_huggingface_object_can_be_passed_on(tokenizer: lmemo.Tokenizer) -> None:
    theirs = tokenizers.Tokenizer.from_str(json.dumps(byte_level()))
    theirs.enable_truncation(4, direction="left")
    theirs.enable_padding(length=6, pad_id=9)
    found = tokenizer.encode("Hello, world", truncation=lmemo.Truncation(**theirs.truncation), padding=lmemo.Padding(**theirs.padding))
    assert found.tolist() == theirs.encode("Hello, world").ids


def test_lengths_that_make_no_sense_are_refused() -> None:
    tokenizer = lmemo.Tokenizer.from_str(json.dumps(bert()))
    assert len(tokenizer.encode("a a a a", truncation=2)) == 2
    for wrong in (1, lmemo.Truncation(3, stride=1), lmemo.Truncation(5, stride=4)):
        with pytest.raises(lmemo.InvalidArgument, match="leaves no room"):
            tokenizer.encode("a a a a", truncation=wrong)
        with pytest.raises(lmemo.InvalidArgument, match="leaves no room"):
            tokenizer.encode_batch(["a a a a"], truncation=wrong)
    with pytest.raises(lmemo.InvalidArgument, match="id that pads"):
        tokenizer.encode("a", padding=True)
    with pytest.raises(lmemo.InvalidArgument, match="padding: expected at most"):
        tokenizer.encode("a", padding=lmemo.Padding(1 << 30))
    with pytest.raises(lmemo.InvalidArgument):
        lmemo.Truncation(-1)
    with pytest.raises(TypeError):
        lmemo.Truncation(True)
    with pytest.raises(lmemo.InvalidArgument):
        lmemo.Padding(direction="up")  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------- wrong types

WRONG_CALLS: dict[str, tuple[Callable[[lmemo.Tokenizer], Any], type[Exception], str]] = {
    "no text": (lambda t: t.encode(None), TypeError, "a text must be str or bytes"),
    "a number": (lambda t: t.encode(5), TypeError, "a text must be str or bytes"),
    "a list": (lambda t: t.encode(["a"]), TypeError, "a text must be str or bytes"),
    "bytes that are not UTF-8": (lambda t: t.encode(b"a\xff"), lmemo.InvalidArgument, "text is not UTF-8 at byte 1"),
    "half of a surrogate pair": (lambda t: t.encode("a\ud800"), UnicodeEncodeError, "surrogates not allowed"),
    "one of the texts with it": (lambda t: t.encode_batch(["a", "a\ud800"]), UnicodeEncodeError, "surrogates not allowed"),
    "no texts": (lambda t: t.encode_batch(None), TypeError, "'NoneType' object is not iterable"),
    "pairs": (lambda t: t.encode_batch([("a", "b")]), TypeError, "a text must be str or bytes"),
    "an array of two dimensions": (lambda t: t.encode_batch(numpy.array([["a"]])), TypeError, "must have one dimension"),
    "an array of none": (lambda t: t.encode_batch(numpy.array("a")), TypeError, "must have one dimension"),
    "a column of numbers": (lambda t: t.encode_batch(pyarrow.array([1])), TypeError, "an Arrow column of type '.*'; expected strings or binary"),
    "two columns": (lambda t: t.encode_batch(pyarrow.table({"a": ["x"], "b": ["y"]})), TypeError, r"a table of 2 columns \(a, b\); give one of them"),
    "a null": (lambda t: t.encode_batch(pyarrow.array(["a", None])), ValueError, "text 1 is null"),
    "threads below zero": (lambda t: t.encode_batch(["a"], threads=-1), lmemo.InvalidArgument, "threads: found -1; expected 0 to"),
    "half a thread": (lambda t: t.encode_batch(["a"], threads=0.5), TypeError, "threads: expected an int, found float"),
    "an id below zero": (lambda t: t.decode([5, -100]), lmemo.InvalidArgument, "id -100: expected 0 to 4294967295"),
    "an id too large": (lambda t: t.decode([1 << 32]), lmemo.InvalidArgument, "id 4294967296: expected 0 to 4294967295"),
    "an id that is none": (lambda t: t.id_to_token(-1), lmemo.InvalidArgument, "id -1: expected"),
    "ids that are not whole": (lambda t: t.decode([1.5]), TypeError, "'float' object cannot be interpreted as an integer"),
    "an array of such": (lambda t: t.decode(numpy.array([1.0])), TypeError, "cannot be interpreted as an integer"),
    "text for ids": (lambda t: t.decode("abc"), TypeError, "'str' object cannot be interpreted as an integer"),
    "no ids": (lambda t: t.decode(None), TypeError, "'NoneType' object is not iterable"),
    "a number as a token": (lambda t: t.token_to_id(5), TypeError, "a text must be str or bytes"),
    "padding beyond memory": (lambda t: t.encode("a", padding=lmemo.Padding(1 << 31)), lmemo.InvalidArgument, "padding: expected at most"),
    "a multiple beyond memory": (lambda t: t.encode("a", padding=lmemo.Padding(pad_to_multiple_of=1 << 31)), lmemo.InvalidArgument, "padding: expected at most"),
    "a part of a batch": (lambda t: t.encode_batch(["a"])[:1], TypeError, "'slice' object cannot be interpreted as an integer"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_calls_are_named_alike_by_both_engines(tokenizer: lmemo.Tokenizer, name: str) -> None:
    call, kind, complaint = WRONG_CALLS[name]
    for engine in (tokenizer, lmemo.Tokenizer(HuggingFaceEngine(json.dumps(byte_level())))):
        with pytest.raises(kind, match=complaint):
            call(engine)


def test_whole_numbers_of_numpy_are_whole_numbers(tokenizer: lmemo.Tokenizer) -> None:
    five = numpy.int64(5)
    lengths = tokenizer.encode("a", truncation=lmemo.Truncation(five), padding=lmemo.Padding(five, pad_id=numpy.uint8(3)))
    assert lengths.tolist() == [*tokenizer.encode("a"), 3, 3, 3, 3]
    assert tokenizer.id_to_token(five) == tokenizer.id_to_token(5)
    assert tokenizer.encode_batch(["a", "b"], threads=numpy.int32(2))[numpy.int64(1)].tolist() == tokenizer.encode("b").tolist()


def test_columns_of_arrow_through_the_engine_behind() -> None:
    fallback = lmemo.Tokenizer(HuggingFaceEngine(json.dumps(byte_level())))
    expected = ids_of(fallback.encode_batch(["x", "y", "x"]))
    column = pyarrow.array(["x", "y", "x"])
    batch = pyarrow.record_batch({"a": column})
    for texts in (column, column.dictionary_encode(), column.cast(pyarrow.large_binary()), pyarrow.table({"a": column}), batch, pyarrow.chunked_array([column[:1], column[1:]])):
        assert ids_of(fallback.encode_batch(texts)) == expected


# ------------------------------------------------------------------------------------------------ HuggingFace objects


def word_level_object() -> Any:
    model = tokenizers.models.WordLevel({"[UNK]": 0, "a": 1, "b": 9}, unk_token="[UNK]")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return made


def test_special_tokens_that_are_encoded_as_text() -> None:
    """Of a setting that no tokenizer.json has."""
    theirs = word_level_object()
    theirs.add_special_tokens(["<s>"])
    usual = lmemo.Tokenizer.from_hf(theirs)
    theirs.encode_special_tokens = True
    ours = lmemo.Tokenizer.from_hf(theirs)
    assert ours.engine == "huggingface" and ours.fingerprint not in (usual.fingerprint, lmemo.Tokenizer(HuggingFaceEngine(theirs.to_str())).fingerprint)
    assert ours.encode("a<s>b").tolist() == theirs.encode("a<s>b").ids != usual.encode("a<s>b").tolist()


def test_an_object_that_a_file_does_not_hold_is_refused() -> None:
    renumbered = word_level_object()
    for token in ("b", "new"):
        renumbered.add_tokens([token])
    assert renumbered.token_to_id("new") == 10
    with pytest.raises(lmemo.Incompatible, match="'new' has the id 10, and 3 once the tokenizer is saved"):
        lmemo.Tokenizer.from_hf(renumbered)

    sampling = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("a", -1.0), ("aa", -1.5)], 0, False))
    assert lmemo.Tokenizer.from_hf(sampling).encode("aaa").tolist() == sampling.encode("aaa").ids
    sampling.model.alpha = 0.5
    with pytest.raises(lmemo.Incompatible, match="alpha: samples"):
        lmemo.Tokenizer.from_hf(sampling)

    class InPython:
        def pre_tokenize(self, pretokenized: Any) -> None: ...

    custom = word_level_object()
    custom.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(InPython())
    with pytest.raises(lmemo.Incompatible, match="cannot be saved"):
        lmemo.Tokenizer.from_hf(custom)


def test_what_huggingface_cannot_do_is_an_error_of_ours() -> None:
    theirs = word_level_object()
    theirs.model.unk_token = "nowhere"
    fallback = lmemo.Tokenizer(HuggingFaceEngine(theirs.to_str()))
    for encode in (lambda: fallback.encode("x"), lambda: fallback.encode_batch(["x"])):
        with pytest.raises(lmemo.InvalidArgument, match="HuggingFace tokenizers: "):
            encode()
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.FixedLength(0)
    with pytest.raises(lmemo.InvalidArgument, match="chunk size"):  # It panics.
        lmemo.Tokenizer(HuggingFaceEngine(theirs.to_str())).encode("x")


def test_files_that_end_a_process_in_huggingface_never_get_there() -> None:
    """In a process of its own, because that is what would end."""
    cut = {"type": "BPE", "continuing_subword_prefix": "a", "vocab": {"é": 0, "x": 1}, "merges": [["x", "é"]]}
    padding = {"strategy": {"Fixed": 1 << 50}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    for content, complaint in [({"model": cut}, "too short"), ({"model": cut, "post_processor": {"type": "X"}}, "post_processor.type"), ({**bert(), "padding": padding}, "1125899906842624")]:
        program = f"import lmemo; lmemo.Tokenizer.from_str({json.dumps(content)!r}).encode('a')"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "lmemo.Incompatible" in done.stderr and complaint in done.stderr, done.stderr


def test_the_command_says_in_a_line_what_huggingface_makes_of_a_text(tmp_path: Path) -> None:
    """Its panics and ours about UTF-8, without the lines of Python that led there."""
    counted_wrong = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": ""}, {"type": "NFD"}]}
    tokenizer, text = tmp_path / "tokenizer.json", tmp_path / "a.txt"
    tokenizer.write_text(json.dumps({**bert(), "normalizer": counted_wrong}))
    for content, command, complaint in [
        (b"ab\xff", ["tokenize", text, "-t", tokenizer], "text is not UTF-8 at byte 2"),
        (b" ", ["tokenize", text, "-t", tokenizer], "HuggingFace tokenizers: index out of bounds"),
        (b" ", ["tokenizer", "check", tokenizer, text], "HuggingFace tokenizers: index out of bounds"),
    ]:
        text.write_bytes(content)
        done = subprocess.run([sys.executable, "-m", "lmemo", *command], capture_output=True, text=True, timeout=60)
        last_line = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1 and last_line.startswith("error: ") and complaint in last_line, done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_of_ten_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(lmemo.Incompatible, match="10737418240 bytes; expected at most"):
        lmemo.Tokenizer.from_file(path)


# -------------------------------------------------------------------------------------------------- model directories


def model_directory(folder: Path, config: dict[str, Any] | None = None, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(byte_level()))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_jinja", ".jinja").replace("_json", ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_templates_and_special_tokens_belong_to_the_identity_of_a_directory(tmp_path: Path) -> None:
    numbers = itertools.count()

    def load(config: dict[str, Any] | None = None, **files: str) -> lmemo.Tokenizer:
        return lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / str(next(numbers)), config, **files))

    plain = load()
    assert plain.chat_template is None and plain.special_tokens == {}
    assert plain.encode("Hello").tolist() == lmemo.Tokenizer.from_str(json.dumps(byte_level())).encode("Hello").tolist()
    config = {"eos_token": {"content": "</s>", "special": True}, "bos_token": "<s>", "chat_template": "A", "tokenizer_class": "X"}
    base = load(config)
    assert base.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    assert base.chat_template == "A"
    same = [load({**dict(reversed(config.items())), "tokenizer_class": "Y", "name_or_path": "elsewhere"})]
    other = [
        plain,
        load({**config, "chat_template": "B"}),
        load({**config, "eos_token": "</t>"}),
        load({**config, "add_bos_token": True}),
        load(config, chat_template_jinja="C"),
        load(config, additional_chat_templates__tool_jinja="C"),
        load({**config, "chat_template": [{"name": "default", "template": "A"}, {"name": "rag", "template": "R"}]}),
    ]
    assert {tokenizer.fingerprint for tokenizer in same} == {base.fingerprint}
    assert lmemo._core.NativeTokenizer.load(tmp_path / "1").fingerprint == base.fingerprint  # As on the command line.
    assert len({tokenizer.fingerprint for tokenizer in [base, *other]}) == len(other) + 1
    assert other[4].chat_template == "C"  # The file wins.
    assert load(None, special_tokens_map_json='{"pad_token": "a"}').encode("", padding=3).tolist() == [base.token_to_id("a")] * 3


def test_the_constructor_names_the_ways_to_a_tokenizer() -> None:
    wrong: Any = "tokenizer.json"
    with pytest.raises(TypeError, match="Tokenizer.from_file"):
        lmemo.Tokenizer(wrong)


def test_a_directory_that_is_none_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="tokenizer.json"):
        lmemo.Tokenizer.from_pretrained_dir(tmp_path / "nowhere")
    broken = model_directory(tmp_path / "broken", None, tokenizer_config_json='{"a": 1, "a": 2}')
    with pytest.raises(lmemo.Incompatible, match="tokenizer_config.json: the key \"a\" stands twice"):
        lmemo.Tokenizer.from_pretrained_dir(broken)


def test_chat_templates_are_applied_by_transformers(tmp_path: Path) -> None:
    template = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
    tokenizer = lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "m", {"tokenizer_class": "PreTrainedTokenizerFast"}, chat_template_jinja=template))
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(lmemo.InvalidArgument, match="no chat template"):
        lmemo.Tokenizer.from_str(json.dumps(byte_level())).apply_chat_template(messages)
    pytest.importorskip("jinja2")
    pytest.importorskip("transformers")
    assert tokenizer.apply_chat_template(messages, tokenize=False) == "<user>Hi"
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    assert not isinstance(ids, str) and ids.tolist() == tokenizer.encode("<user>Hi<a>", False).tolist()


# --------------------------------------------------------------------------------------------------------- tiktoken


def ranks_of(name: str) -> dict[bytes, int]:
    """The ranks of a vocabulary that was made from a tiktoken file."""
    from tokenizer_traps_test import byte_characters

    byte_of = {character: byte for byte, character in byte_characters().items()}
    content = json.loads(vocabularies.json_of(name))
    special = {token["content"] for token in content["added_tokens"]}
    vocab = {token: id for token, id in content["model"]["vocab"].items() if token not in special}
    return {bytes(byte_of[character] for character in token): id for token, id in vocab.items()}


def rank_file(path: Path, ranks: dict[bytes, int]) -> Path:
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    return path


@pytest.mark.parametrize(("name", "encoding"), [("gpt2", "r50k_base"), ("cl100k", "cl100k_base"), ("o200k", "o200k_base")])
def test_a_rank_file_gives_the_ids_of_tiktoken(name: str, encoding: str, tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    from tiktoken_ext import openai_public

    if name not in vocabularies.names():
        pytest.skip(f"{name} is not there: parity with tiktoken was NOT tested")
    ranks = ranks_of(name)
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks  # The real one would download them.
    definition = getattr(openai_public, encoding)()
    theirs = tiktoken.Encoding(**definition | {"explicit_n_vocab": None})
    special = definition["special_tokens"]
    ours = lmemo.Tokenizer.from_tiktoken(rank_file(tmp_path / "ranks", ranks), encoding, special)
    documents = texts.nasty(seed=5, special_tokens=list(special)) + texts.PROSE + [text for _, text in texts.sources()][:4]
    documents += ["a  \n  ", "x \n\n \t", "\u3000 \n", "    \n    \n", "end "]
    for document, found in zip(documents, ours.encode_batch(documents)):
        assert found.tolist() == theirs.encode(document, allowed_special="all"), document
    rng = random.Random(1)
    tokens = list(ranks)
    for _ in range(300):  # Bytes that merge in unusual places.
        text = b"".join(rng.choice(tokens) for _ in range(rng.randint(1, 6))).decode(errors="ignore")
        assert ours.encode(text).tolist() == theirs.encode(text, allowed_special="all"), text
        assert ours.decode(ours.encode(text), skip_special_tokens=False) == text


def small_ranks() -> dict[bytes, int]:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for token in (b"aa", b"aaa", b"aaaa", b"ab", b"ba", b"aba", b"abab", b"  ", b"    ", "é".encode()):
        ranks[token] = len(ranks)
    return ranks


def test_equal_ways_to_a_token_are_taken_from_left_to_right(tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    pattern = r"[ab]+| +|[^ab ]"
    theirs = tiktoken.Encoding("small", pat_str=pattern, mergeable_ranks=small_ranks(), special_tokens={"<|x|>": 900})
    ours = lmemo.Tokenizer.from_tiktoken(rank_file(tmp_path / "ranks", small_ranks()), pattern, {"<|x|>": 900})
    rng = random.Random(2)
    for text in ["".join(rng.choices(["a", "b", "aa", "aaa", " ", "é", "<|x|>"], k=rng.randint(1, 14))) for _ in range(500)]:
        assert ours.encode(text).tolist() == theirs.encode(text, allowed_special="all"), text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (b"!!!! 300\n", "line 267: .*is not base64"),
        (b"YWFh\n", "line 267: expected base64, a blank and a rank"),
        (b"YWFhYWFh -1\n", "line 267: expected a rank"),
        (b"YWFhYWFh 4294967296\n", "line 267: expected a rank"),
        (b"YWFhYWFh 5\n", "line 267: a token or a rank that stands"),
        (b"YWE= 999\n", "line 267: a token or a rank that stands"),
        (b" 7000\n", "line 267"),
    ],
)
def test_a_rank_file_that_is_none_is_refused_with_the_line(change: bytes, complaint: str, tmp_path: Path) -> None:
    path = rank_file(tmp_path / "ranks", small_ranks())
    path.write_bytes(path.read_bytes() + change)
    with pytest.raises(lmemo.Incompatible, match=complaint):
        lmemo.Tokenizer.from_tiktoken(path, "cl100k")


def test_rank_files_have_an_identity_of_their_own(tmp_path: Path) -> None:
    path = rank_file(tmp_path / "ranks", small_ranks())
    shuffled = rank_file(tmp_path / "shuffled", dict(reversed(small_ranks().items())))

    def fingerprint(file: Path = path, pattern: str = "cl100k", special: dict[str, int] | None = None) -> str:
        return lmemo.Tokenizer.from_tiktoken(file, pattern, special).fingerprint

    assert fingerprint() == fingerprint(shuffled) == fingerprint(pattern="cl100k_base")
    assert len({fingerprint(), fingerprint(pattern="gpt2"), fingerprint(special={"a": 999}), fingerprint(special={"a": 998})}) == 4
    with pytest.raises(lmemo.InvalidArgument, match="expected a regex or one of gpt2"):
        fingerprint(pattern="cl100")
    for ambiguous in (r"\s+$|.", "^a|.", r"\p{N}{1,3}+|.", r"\w+|."):
        with pytest.raises(lmemo.Incompatible, match="means another thing to tiktoken"):
            fingerprint(pattern=ambiguous)
    assert fingerprint(pattern=r"[^a$^]+|a|[$]|\$") != fingerprint()
    with pytest.raises(lmemo.InvalidArgument, match="belongs to another token"):
        fingerprint(special={"x": 5})
    with pytest.raises(lmemo.Incompatible, match="has no rank"):
        fingerprint(rank_file(tmp_path / "few", {b"a": 0}))


# ----------------------------------------------------------------------------------------------- HuggingFace's engine


def test_huggingfaces_engine_has_a_fingerprint_that_ignores_the_order_of_keys() -> None:
    content = {**byte_level(), "model": {**byte_level()["model"], "dropout": 0.5}}  # Ours refuses it.
    one = lmemo.Tokenizer.from_str(json.dumps(content))
    other = lmemo.Tokenizer.from_str(json.dumps(dict(reversed(content.items())), indent=2))
    assert one.engine == other.engine == "huggingface"
    assert one.fingerprint == other.fingerprint
    content["model"]["dropout"] = 0.25
    assert lmemo.Tokenizer.from_str(json.dumps(content)).fingerprint != one.fingerprint


def test_a_huggingface_object_is_taken_as_it_is(tokenizer: lmemo.Tokenizer) -> None:
    theirs = tokenizers.Tokenizer.from_str(json.dumps(byte_level()))
    assert lmemo.Tokenizer.from_hf(theirs).encode("Hello").tolist() == tokenizer.encode("Hello").tolist()
    theirs.enable_truncation(2)
    assert lmemo.Tokenizer.from_hf(theirs).encode("Hello").tolist() == theirs.encode("Hello").ids
    with pytest.raises(TypeError, match="expected a tokenizers.Tokenizer"):
        lmemo.Tokenizer.from_hf("gpt2")


def test_huggingfaces_engine_takes_the_same_texts() -> None:
    engine = lmemo.Tokenizer(HuggingFaceEngine(json.dumps(byte_level())))
    expected = [engine.encode(text).tolist() for text in TEXTS]
    many = TEXTS * 1700  # More than go through at once.
    assert ids_of(engine.encode_batch(many)) == expected * 1700
    for given in ((text for text in TEXTS), [text.encode() for text in TEXTS], numpy.array(TEXTS)):
        assert ids_of(engine.encode_batch(given)) == expected
    assert len(engine.encode_batch([])) == 0
    with pytest.raises(TypeError):
        engine.encode_batch("a text")
    pa = pytest.importorskip("pyarrow")
    assert ids_of(engine.encode_batch(pa.array(TEXTS))) == ids_of(engine.encode_batch(pa.chunked_array([TEXTS]))) == expected
    with pytest.raises(ValueError, match="text 1 is null"):
        engine.encode_batch(pa.array(["a", None]))
