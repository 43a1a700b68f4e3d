"""What one process learned about pieces of text, saved for the next."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tokenizer_traps_test import File, byte_level, sentence_piece_by_metaspace  # noqa: E402

import lmemo  # noqa: E402

TEXTS = [f"word{n} and more of it, {n * 7919}\n" for n in range(500)]
SCRIPT = """
import json, sys, lmemo
tokenizer = lmemo.Tokenizer.from_file(sys.argv[1])
count = tokenizer.load_pieces(sys.argv[2])
print(json.dumps([count, tokenizer.encode_batch(json.load(sys.stdin)).ids.tolist()]))
"""


@pytest.mark.parametrize("make", [byte_level, sentence_piece_by_metaspace])
def test_pieces_of_one_process_serve_the_next(make: Callable[[], File], tmp_path: Path) -> None:
    file, saved = tmp_path / "tokenizer.json", tmp_path / "pieces"
    file.write_text(json.dumps(make()))
    tokenizer = lmemo.Tokenizer.from_file(file)
    assert tokenizer.engine == "fast"
    expected = tokenizer.encode_batch(TEXTS).ids.tolist()
    tokenizer.save_pieces(saved)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, file, saved], input=json.dumps(TEXTS), capture_output=True, text=True, check=True
    )
    count, ids = json.loads(done.stdout)
    assert count > 300
    assert ids == expected


def test_pieces_of_another_tokenizer_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    saved = tmp_path / "pieces"
    tokenizer = lmemo.Tokenizer.from_str(json.dumps(byte_level()))
    assert tokenizer.load_pieces(saved) == 0
    tokenizer.encode("some text")
    tokenizer.save_pieces(saved)
    assert tokenizer.load_pieces(saved) >= 2
    other = byte_level()
    other["added_tokens"] = []
    other["model"]["ignore_merges"] = True
    with pytest.raises(lmemo.Incompatible):
        lmemo.Tokenizer.from_str(json.dumps(other)).load_pieces(saved)
    whole = bytearray(saved.read_bytes())
    whole[60] ^= 1
    saved.write_bytes(whole)
    with pytest.raises(lmemo.Corruption):
        tokenizer.load_pieces(saved)
    assert list(tokenizer.encode("some text")) == list(lmemo.Tokenizer.from_str(json.dumps(byte_level())).encode("some text"))

