"""The same part of a tokenizer on both sides: our C++ (through the program split_probe) and HuggingFace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def probe_path() -> Path:
    if given := os.environ.get("LMEMO_SPLIT_PROBE"):
        return Path(given)
    return ROOT / os.environ.get("LMEMO_BUILD_DIR", "build/dev") / "tests/programs/split_probe"


def ask(questions: list[dict[str, Any]]) -> list[Any]:
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    answered = subprocess.run([probe_path()], input=lines, capture_output=True, text=True, check=True, encoding="utf-8")
    return [json.loads(line) for line in answered.stdout.split("\n") if line]


def huggingface(normalizer: Any, pre_tokenizer: Any) -> Any:
    import tokenizers

    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    parts = {"version": "1.0", "added_tokens": [], "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": model}
    return tokenizers.Tokenizer.from_str(json.dumps(parts))


def compare_normalizer(part: dict[str, Any], texts: list[str]) -> None:
    made, *ours = ask([{"normalizer": part}, *({"normalize": text} for text in texts)])
    assert made == "ok"
    theirs = huggingface(part, None).normalizer
    differences = []
    for text, got in zip(texts, ours, strict=True):
        if (want := theirs.normalize_str(text)) != got:
            differences.append((text, want, got))
    assert not differences, f"{len(differences)} of {len(texts)}; (text, HuggingFace, lmemo): {differences[:3]}"


def compare_pre_tokenizer(part: dict[str, Any], texts: list[str]) -> None:
    made, *ours = ask([{"pre_tokenizer": part}, *({"split": text} for text in texts)])
    assert made == "ok"
    theirs = huggingface(None, part).pre_tokenizer
    differences = []
    for text, got in zip(texts, ours, strict=True):
        if (want := [piece for piece, _ in theirs.pre_tokenize_str(text)]) != got:
            differences.append((text, want, got))
    assert not differences, f"{len(differences)} of {len(texts)}; (text, HuggingFace, lmemo): {differences[:3]}"


def compare_starts(normalizer: dict[str, Any], texts: list[str]) -> None:
    """Metaspace with "first" behind a normalizer: whether HuggingFace still takes the result for the input's start."""
    import tokenizers

    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    model = {"type": "BPE", "vocab": {"[UNK]": 0, "▁": 1}, "merges": [], "unk_token": "[UNK]", "fuse_unk": False}
    parts = {"version": "1.0", "added_tokens": [], "normalizer": normalizer, "pre_tokenizer": metaspace, "model": model}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(parts))
    questions = [{"normalizer": normalizer}, {"pre_tokenizer": metaspace}, *({"encode": text} for text in texts)]
    *made, ours = ask(questions[:2]) + [ask(questions)[2:]]
    assert made == ["ok", "ok"]
    differences = []
    for text, got in zip(texts, ours, strict=True):
        want = [token == 1 for token in theirs.encode(text).ids]
        if want != [character == "▁" for character in "".join(got)]:
            differences.append((text, want[:3], got))
    assert not differences, f"{len(differences)} of {len(texts)}; (text, HuggingFace, lmemo): {differences[:3]}"
