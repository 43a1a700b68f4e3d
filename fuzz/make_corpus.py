"""Makes the seeds of the fuzz targets, those of the store from the golden files: python3 fuzz/make_corpus.py"""

import json
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent
golden = here.parent / "tests" / "golden"
corpus = here / "corpus"


def seed(target: str, name: str, data: bytes) -> None:
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


for path in sorted(golden.glob("*-v1.*")):
    if path.suffix == ".json":
        continue
    data = path.read_bytes()
    targets = ["segment_fuzz", "sound_segment_fuzz", "salvage_fuzz"]
    if len(data) < 4000:  # Opening, repairing and compacting a store takes long enough.
        targets.append("store_fuzz")
    for target in targets:
        seed(target, path.name, data)
    if data[-128:-120] != b"LMEMOEND":
        seed("record_fuzz", path.name, data[64:4000])
        continue
    entries, index, fields, kinds, footer = struct.unpack_from("<5Q", data, len(data) - 128 + 24)
    seed("record_fuzz", path.name, data[64 : min(index, 4000)])
    seed("fields_fuzz", path.name, bytes([entries % 8]) + data[fields:kinds])
    seed("kinds_fuzz", path.name, data[kinds:footer])

for number, vector in enumerate(json.loads((golden / "keys.json").read_text())["vectors"]):
    if number % 4 == 0:
        seed("key_fuzz", f"vector-{number:03}", bytes.fromhex(vector["encoding"]))
        seed("fields_fuzz", f"vector-{number:03}", b"\0" + bytes.fromhex(vector["encoding"]))

# ------------------------------------------------------------------------------------------------- the tokenizer

bpe = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "<unk>": 4}, "merges": ["a b"]}
piece = {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9, "vocab": {"u": 0, "a": 1, "##b": 2}}
split = {"type": "Split", "pattern": {"Regex": r"\p{L}+|\s+(?!\S)|[^\s\p{N}]{1,3}"}, "behavior": "Isolated", "invert": False}
level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
token = {"id": 5, "content": "<s>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": True, "special": True}
template = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}},
}
lengths = {
    "truncation": {"direction": "Left", "max_length": 4, "strategy": "LongestFirst", "stride": 1},
    "padding": {"strategy": {"Fixed": 6}, "direction": "Left", "pad_to_multiple_of": 4, "pad_id": 1, "pad_type_id": 0, "pad_token": "p"},
}
files = {
    "byte-level": {"version": "1.0", "model": bpe, "pre_tokenizer": level, "decoder": level, "added_tokens": [token], "post_processor": template, **lengths},
    "pairs": {"model": {**bpe, "merges": [["a", "b"]], "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "ignore_merges": True}, "pre_tokenizer": split},
    "prefix": {"model": {**bpe, "merges": [], "continuing_subword_prefix": "a", "end_of_word_suffix": "b"}},
    "word-piece": {"model": piece, "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}},
    "unigram": {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["u", 0.0], ["a", -1.5], ["ab", -2], ["▁", -1e-3]]}, "pre_tokenizer": meta, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "Strip", "strip_left": True, "strip_right": False}]}, "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}},
    "word-level": {"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 4294967295, "a": 7}}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Removed"}]}, "post_processor": {"type": "BertProcessing", "sep": ["u", 0], "cls": ["a", 1]}},
}  # fmt: skip
for name, content in files.items():
    seed("tokenizer_file_fuzz", name, json.dumps(content, ensure_ascii=name == "pairs").encode())

texts = ["Hello, it's 1234\n\n  don't", "  \r\n\t x", "été naïve 中文中国 Привет", "<s>a<pad> <|im_end|>  word Thé", "😀👍🏽\u200d\u0301e\u0301", "AbcABC'S 'ſ\u00a0\u3000 ...!!!", "a" * 300, "zebra xyzzy"]
for number, text in enumerate(texts):
    for which in range(0, 20, 3):
        seed("tokenizer_engines_fuzz", f"text-{number}-{which:02}", bytes([which + number % 3]) + text.encode())

# ------------------------------------------------------------------------------------------------- packs of tokenised rows

for width in (2, 3, 4):
    ids = b"".join(number.to_bytes(width, "little") for number in (1, 2, 3, 500))
    pack = struct.pack("<3I", 1, width, 3) + bytes(range(96)) + struct.pack("<3I3I4I", 3, 0, 1, 2, 0, 2, 1, 2, 0, 1) + ids
    seed("row_pack_fuzz", f"width-{width}", pack)
