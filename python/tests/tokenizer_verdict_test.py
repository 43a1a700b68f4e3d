"""Where the two engines were found to differ, HuggingFace's runs; asked once, remembered under identity and versions."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

tokenizers = pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent))

from tokenizer_traps_test import byte_level  # noqa: E402

import lmemo  # noqa: E402
from lmemo import _verdict  # noqa: E402
from lmemo._core import NativeTokenizer  # noqa: E402
from lmemo._huggingface import HuggingFaceEngine  # noqa: E402

FILE = json.dumps(byte_level())


@pytest.fixture
def verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMEMO_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("LMEMO_TOKENIZER_CHECK", raising=False)
    return tmp_path / "store" / "tokenizers"


def test_the_first_use_asks_and_later_ones_remember(verdicts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = lmemo.Tokenizer.from_str(FILE)
    assert tokenizer.engine != "huggingface"
    [path] = verdicts.iterdir()
    assert json.loads(path.read_text()) == {"verdict": "same", "texts": len(_verdict.TRAPS), "first_difference": None}
    for part in (tokenizer.fingerprint, tokenizers.__version__, lmemo.__version__, tokenizer.engine):
        assert part in path.name
    monkeypatch.setattr(_verdict, "first_difference", lambda *_: pytest.fail("asked again"))
    assert lmemo.Tokenizer.from_str(FILE).fingerprint == tokenizer.fingerprint


def test_a_difference_switches_to_huggingface_for_good_and_says_so_once(
    verdicts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine is broken on purpose: what it is compared with sees another text."""
    native = NativeTokenizer.from_json(FILE)
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING, logger="lmemo"):
        encode = HuggingFaceEngine.encode
        broken.setattr(HuggingFaceEngine, "encode", lambda self, text, *rest: encode(self, text.replace("CamelCase", "x"), *rest))
        switched = lmemo.Tokenizer.from_str(FILE)
    assert switched.engine == "huggingface" and switched.fingerprint != native.fingerprint
    [record] = caplog.records
    assert "differ on 'CamelCaseHTTPServer'" in record.getMessage()
    caplog.clear()
    again = lmemo.Tokenizer.from_str(FILE)
    assert again.engine == "huggingface" and again.fingerprint == switched.fingerprint
    assert not caplog.records


def test_a_stored_difference_counts(verdicts: Path) -> None:
    path = _verdict.path_of(NativeTokenizer.from_json(FILE), tokenizers.__version__)
    _verdict.store(path, "differs", "x")
    assert lmemo.Tokenizer.from_str(FILE).engine == "huggingface"
    for damaged in ("", "{}", '{"verdict": 5}', "[]", "differs"):
        path.write_text(damaged)
        assert _verdict.stored(path) is None
        assert lmemo.Tokenizer.from_str(FILE).engine != "huggingface"
        assert _verdict.stored(path) == "same"  # Asked again.


def test_a_directory_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LMEMO_STORE", str(tmp_path / "file" / "store"))
    monkeypatch.delenv("LMEMO_TOKENIZER_CHECK", raising=False)
    assert lmemo.Tokenizer.from_str(FILE).engine != "huggingface"


def test_nobody_is_asked_where_it_is_not_wanted(verdicts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMEMO_TOKENIZER_CHECK", "never")
    assert lmemo.Tokenizer.from_str(FILE).engine != "huggingface"
    assert not verdicts.exists()


def test_a_store_does_not_mind_the_verdicts_in_its_directory(verdicts: Path) -> None:
    lmemo.Tokenizer.from_str(FILE)
    with lmemo.Store(verdicts.parent) as store:
        store.put(lmemo.Key.of("test", n=1), b"x")
        store.flush()
        assert store.verify().is_clean and store.verify().foreign == []
        store.clear()
    assert len(list(verdicts.iterdir())) == 1
