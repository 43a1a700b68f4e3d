"""lmemo sections and lmemo metrics, for programs: fields, defaults of documents, interruptions, tokenizers that only HuggingFace runs."""

from __future__ import annotations

import csv
import io
import json
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "tests"))
import tokenizer_vocabularies  # noqa: E402
from lmemo_process import Lmemo, name_of, programs  # noqa: E402

RUN_FIELDS = ["total_sections", "cache_hits", "cache_misses", "total_tokenize_seconds", "cache_bytes_after"]
LETTERS = "abcdefghijklmnopqrstuvwxyz .\n"


@pytest.fixture(params=programs(), ids=name_of)
def lmemo(request: pytest.FixtureRequest, tmp_path: Path) -> Lmemo:
    program = Lmemo(request.param, tmp_path)
    program.environment["LMEMO_STORE"] = str(tmp_path / "store")
    (tmp_path / "tree").mkdir()
    for number in range(10):
        (tmp_path / "tree" / f"{number}.txt").write_text(f"a file with the letter {LETTERS[number]}\n" * (number + 1))
    write_model(tmp_path / "model")
    return program


def write_model(folder: Path, **model: Any) -> None:
    folder.mkdir()
    parts = {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "truncation": None, "padding": None}
    eos = {"id": len(LETTERS), "content": "<eos>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    vocab = {letter: number for number, letter in enumerate(LETTERS)} | {"<eos>": len(LETTERS)}
    bpe = {"type": "BPE", "unk_token": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [eos], "model": bpe} | parts | model))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<eos>"}')


def answer(lmemo: Lmemo, *words: str) -> dict[str, Any]:
    ran = lmemo.run(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def sync(lmemo: Lmemo, *words: str) -> dict[str, Any]:
    return answer(lmemo, "sections", "sync", *words, "--tokenizer", "model")


def test_programs_find_every_field(lmemo: Lmemo) -> None:
    assert answer(lmemo, "metrics")["runs"] == []
    cold, warm = sync(lmemo, "tree"), sync(lmemo, "tree")
    assert (cold["cache_hits"], cold["cache_misses"], cold["hit_rate"]) == (0, 10, 0)
    assert (warm["cache_hits"], warm["cache_misses"], warm["hit_rate"]) == (10, 0, 1)
    assert cold["total_sections"] == 10 and cold["total_tokens"] == warm["total_tokens"] > 0
    assert cold["cache_bytes_after"] == warm["cache_bytes_after"] > 0
    assert cold["run_id"] < warm["run_id"]

    shown = answer(lmemo, "sections", "show")
    assert shown["path"] == str(lmemo.directory / "store")
    assert (shown["entry_count"], shown["bytes"]) == (10, warm["cache_bytes_after"])
    assert (shown["last_run_hit_rate"], shown["last_run_id"], shown["orphans"]) == (1, warm["run_id"], 0)
    (tokenizer,) = shown["by_tokenizer"]
    assert (tokenizer["entry_count"], tokenizer["bytes"]) == (10, shown["bytes"])

    runs = answer(lmemo, "metrics")["runs"]
    assert [run["run_id"] for run in runs] == [warm["run_id"], cold["run_id"]]
    for run, told in zip(runs, (warm, cold), strict=True):
        assert run["tokenization"] == {name: told[name] for name in RUN_FIELDS}
        assert run["source"] == str(lmemo.directory / "tree")
        assert run["tokenizer"] == tokenizer["tokenizer"]
    assert runs[1]["miss_reasons"] == {"new": 10}
    assert [run["run_id"] for run in answer(lmemo, "metrics", "--limit", "1")["runs"]] == [warm["run_id"]]
    rows = list(csv.DictReader(io.StringIO(lmemo.run("metrics", "--csv").stdout)))
    assert [row["run_id"] for row in rows] == [warm["run_id"], cold["run_id"]]
    assert [int(row["cache_misses"]) for row in rows] == [0, 10]


def test_since_looks_at_when_a_run_began(lmemo: Lmemo) -> None:
    old, new = sync(lmemo, "tree"), sync(lmemo, "tree")
    with sqlite3.connect(lmemo.directory / "store" / "metrics.db") as database:
        a_day_ago = time.time_ns() - 25 * 3600 * 10**9
        database.execute("UPDATE runs SET started_at_ns = ? WHERE run_id = ?", (a_day_ago, old["run_id"]))
    database.close()
    assert [run["run_id"] for run in answer(lmemo, "metrics", "--since", "24h")["runs"]] == [new["run_id"]]
    assert len(answer(lmemo, "metrics", "--since", "2d")["runs"]) == 2


def test_what_an_edit_or_another_tokenizer_leaves_is_counted_and_never_served(lmemo: Lmemo) -> None:
    sync(lmemo, "tree")
    (lmemo.directory / "tree" / "0.txt").write_text("edited\n")
    assert sync(lmemo, "tree")["miss_reasons"]["edited"] == 1
    assert answer(lmemo, "sections", "show")["orphans"] == 1
    # The same name, one merge more.
    written = json.loads((lmemo.directory / "model" / "tokenizer.json").read_text())
    written["model"]["vocab"]["th"] = len(LETTERS) + 1
    written["model"]["merges"] = ["t h"]
    (lmemo.directory / "model" / "tokenizer.json").write_text(json.dumps(written))
    changed = sync(lmemo, "tree")
    assert (changed["cache_hits"], changed["miss_reasons"]["tokenizer_changed"]) == (0, 10)
    shown = answer(lmemo, "sections", "show")
    assert (shown["entry_count"], shown["orphans"]) == (21, 11)
    assert sorted(total["entry_count"] for total in shown["by_tokenizer"]) == [10, 11]
    assert sync(lmemo, "tree")["cache_hits"] == 10


def test_a_document_gives_defaults_and_flags_win(lmemo: Lmemo) -> None:
    document = lmemo.directory / "doc.dlm"
    document.write_text("---\ndlm_id: x\ntraining:\n  sequence_len: 5\n  sources: [{path: tree}]\n  cache: {prune_older_than_days: 7}\n---\n")
    assert sync(lmemo, "doc.dlm")["total_tokens"] == 50
    assert sync(lmemo, "doc.dlm", "--sequence-len", "3")["total_tokens"] == 30
    assert answer(lmemo, "sections", "show", "doc.dlm")["entry_count"] == 10
    # Nothing is 7 days old; with 0 days all is.
    assert answer(lmemo, "sections", "prune", "doc.dlm", "--dry-run")["entries"] == 0
    document.write_text(document.read_text().replace("days: 7", "days: 0"))
    assert answer(lmemo, "sections", "prune", "doc.dlm", "--dry-run")["entries"] == 10
    assert answer(lmemo, "sections", "prune", "doc.dlm", "--dry-run", "--older-than", "12h")["entries"] == 0
    assert answer(lmemo, "sections", "prune", "doc.dlm", "--yes")["entries"] == 10
    assert answer(lmemo, "sections", "show", "doc.dlm")["entry_count"] == 0
    assert sync(lmemo, "doc.dlm")["miss_reasons"]["evicted"] == 10

    document.write_text("---\ntraining:\n  sources: [tree]\n  cache: {enabled: false}\n---\n")
    off = sync(lmemo, "doc.dlm")
    assert (off["cache_enabled"], off["cache_hits"], off["cache_misses"]) == (False, 0, 10)
    assert len(answer(lmemo, "metrics")["runs"]) == 3


def test_no_cache_changes_nothing_in_the_store(lmemo: Lmemo) -> None:
    sync(lmemo, "tree")

    def state() -> dict[str, tuple[int, bytes]]:
        folder = lmemo.directory / "store"
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}

    before = state()
    assert sync(lmemo, "tree", "--no-cache")["cache_misses"] == 10
    assert state() == before


def test_a_strict_document_refuses_what_leaves_its_directory(lmemo: Lmemo) -> None:
    folder = lmemo.directory / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "other").mkdir()
    (folder / "other" / "a.txt").write_text("a")
    (folder / "src" / "b.txt").write_text("b")
    (folder / "src" / "inside.txt").symlink_to("../other/a.txt")
    document = folder / "doc.dlm"

    def write(policy: str, source: str) -> None:
        document.write_text(f"---\ntraining:\n  sources_policy: {policy}\n  sources: [{source}]\n---\n")

    # A link from one source to another part of the project stays within it.
    write("strict", "src")
    assert sync(lmemo, str(document))["total_sections"] == 1
    write("strict", "../tree")
    refused = lmemo.run("sections", "sync", str(document), "-t", "model")
    assert refused.returncode != 0 and "strict" in refused.stderr
    write("permissive", "../tree")
    warned = lmemo.run("sections", "sync", str(document), "-t", "model")
    assert warned.returncode == 0 and "outside the document's directory" in warned.stderr

    (folder / "src" / "out.txt").symlink_to(lmemo.directory / "tree" / "0.txt")
    (folder / "link").symlink_to(lmemo.directory / "tree")
    for source in ("src", "link"):
        write("strict", source)
        refused = lmemo.run("sections", "sync", str(document), "-t", "model")
        assert refused.returncode != 0 and "strict" in refused.stderr
    write("permissive", "src")
    warned = lmemo.run("sections", "sync", str(document), "-t", "model", "--json")
    assert json.loads(warned.stdout)["total_sections"] == 1
    assert "out.txt: a symbolic link that leaves the source" in warned.stderr
    # The policy is that document's alone.
    write("strict", "other")
    assert sync(lmemo, str(document), str(folder / "src"))["total_sections"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl_c", "sigterm"])
def test_an_interrupted_run_is_recorded_and_loses_nothing(lmemo: Lmemo, number: signal.Signals) -> None:
    text = "the text of a file, with some words in it. " * 200
    for index in range(1500):
        (lmemo.directory / "tree" / f"many{index}.txt").write_text(f"{LETTERS[index % 26]}{LETTERS[index // 26 % 26]}{LETTERS[index // 676]} {text}")
    parts = lmemo.directory / "store" / "writing"
    process = lmemo.start("sections", "sync", "tree", "--tokenizer", "model", "--threads", "1")
    while process.poll() is None and not (parts.is_dir() and any(path.stat().st_size > 200_000 for path in parts.glob("*.part"))):
        time.sleep(0.001)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    (run,) = answer(lmemo, "metrics")["runs"]
    made = run["tokenization"]["cache_misses"]
    assert 0 < made < 1510
    again = sync(lmemo, "tree")
    assert (again["total_sections"], again["cache_hits"], again["cache_misses"]) == (1510, made, 1510 - made)


def test_what_is_not_there_is_said_and_what_was_there_is_shown(lmemo: Lmemo) -> None:
    sync(lmemo, "tree")
    shown = lmemo.run("sections", "show", "treee")
    assert shown.returncode == 1 and f"no source at {lmemo.directory}/treee: it is not there" in shown.stderr
    (lmemo.directory / "tree").rename(lmemo.directory / "moved")
    assert answer(lmemo, "sections", "show", "tree")["entry_count"] > 0
    for tokenizer in ("modell", "moved"):
        done = lmemo.run("sections", "sync", "moved", "-t", tokenizer)
        assert done.returncode == 1 and f"no tokenizer at {lmemo.directory}/{tokenizer}" in done.stderr
        assert "expected a tokenizer.json, or a model's directory with one" in done.stderr


def test_clear_asks_and_forgets(lmemo: Lmemo) -> None:
    sync(lmemo, "tree")
    code, shown = lmemo.on_terminal("sections", "clear", "tree", answer=b"n\n")
    assert code != 0 and "[y/N]" in shown
    assert answer(lmemo, "sections", "show")["entry_count"] == 10
    code, shown = lmemo.on_terminal("sections", "clear", "tree", answer=b"y\n")
    assert code == 0
    assert answer(lmemo, "sections", "show")["entry_count"] == 0
    assert sync(lmemo, "tree")["miss_reasons"]["new"] == 10


def test_a_tokenizer_that_only_huggingface_runs(lmemo: Lmemo) -> None:
    """Its truncation means nothing for single texts, and so lmemo refuses the file; for sections it does not count."""
    write_model(lmemo.directory / "refused", truncation={"direction": "Right", "max_length": 5, "strategy": "OnlySecond", "stride": 0})
    ran = lmemo.run("sections", "sync", "tree", "-t", "refused", "--json")
    if name_of(lmemo.program) == "stand-alone":
        assert ran.returncode != 0
        assert "pip install" in ran.stderr
        return
    assert ran.returncode == 0, ran.stderr
    assert "HuggingFace's engine" in ran.stderr
    cold = json.loads(ran.stdout)
    warm = json.loads(lmemo.run("sections", "sync", "tree", "-t", "refused", "--json").stdout)
    assert (cold["cache_misses"], warm["cache_hits"]) == (10, 10)
    whole = tokenizer_vocabularies.tokenizers.Tokenizer.from_file(str(lmemo.directory / "refused" / "tokenizer.json"))
    whole.no_truncation()
    texts = [path.read_text() + "<eos>" for path in (lmemo.directory / "tree").iterdir()]
    assert cold["total_tokens"] == sum(min(2048, len(whole.encode(text).ids)) for text in texts)


def test_a_tokenizer_that_answers_otherwise_is_an_error(lmemo: Lmemo) -> None:
    sync(lmemo, "tree")
    (canary,) = (lmemo.directory / "store" / "tokenizers").glob("*.canary")
    seen = canary.read_text()
    canary.write_text("0" * 64)
    ran = lmemo.run("sections", "sync", "tree", "-t", "model")
    assert ran.returncode != 0
    assert seen[:12] in ran.stderr and "000000000000" in ran.stderr
    canary.write_text("damaged")
    assert sync(lmemo, "tree")["cache_hits"] == 10
    assert canary.read_text() == seen
    assert lmemo.run("sections", "clear", "--yes").returncode == 0
    assert not canary.exists()


def test_a_corpus_that_will_not_fit_is_told_before_it_is_read(lmemo: Lmemo) -> None:
    document = lmemo.directory / "doc.dlm"
    document.write_text("---\ntraining:\n  sources: [tree]\n  cache: {max_bytes: 3000}\n---\n")
    ran = lmemo.run("sections", "sync", "doc.dlm", "-t", "model", "--json")
    assert "this corpus takes about" in ran.stderr and "raise max_bytes" in ran.stderr and "narrow the corpus" in ran.stderr
    told = json.loads(ran.stdout)
    assert told["total_sections"] == 10
    assert 0 < told["cache_bytes_after"] <= 3000
    assert 0 < sync(lmemo, "doc.dlm")["cache_hits"] < 10
