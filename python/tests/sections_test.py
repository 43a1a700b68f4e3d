"""The section cache: what hits, what misses, and why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import lmemo
import pytest
import tokenizer_vocabularies

LETTERS = "abcdefghijklmnopqrstuvwxyz .\n"


def tokenizer_json(extra_merge: bool = False) -> str:
    """A small byte-pair tokenizer: letters, a few merges, an end of sequence."""
    vocab = {letter: number for number, letter in enumerate(LETTERS)}
    merges = ["t h", "th e", "i n"] + (["a n"] if extra_merge else [])
    for merge in merges:
        vocab[merge.replace(" ", "")] = len(vocab)
    vocab["<eos>"] = len(vocab)
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
        "added_tokens": [{"id": vocab["<eos>"], "content": "<eos>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": merges},
    })  # fmt: skip


def model_directory(folder: Path, *, template: str | None = None, eos: str | None = "<eos>", extra_merge: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer_json(extra_merge))
    settings = {"eos_token": eos, "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    for number in range(20):
        path = folder / f"d{number % 3}" / f"f{number:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the thing in file {'abcdefghijklmnopqrstuvwxyz'[number]}\n" * (number + 1))
    (folder / "empty.txt").write_text("")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> lmemo.SectionCache:
    return lmemo.SectionCache(lmemo.Store(tmp_path / "store"), lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "model")), 64)


def counts(run: lmemo.Run) -> tuple[int, int]:
    return run.stats.cache_hits, run.stats.cache_misses


def test_the_second_run_hits_and_its_rows_are_those_of_the_tokenizer(cache: lmemo.SectionCache, tree: Path) -> None:
    cold = cache.sync(tree)
    assert counts(cold) == (0, 21)
    assert cold.stats.miss_reasons["new"] == 21
    warm = cache.sync(tree)
    assert counts(warm) == (21, 0)
    assert warm.paths == sorted(tree.rglob("*.txt"), key=os.fsencode)
    tokenizer = lmemo.Tokenizer.from_str(tokenizer_json())
    for path, first, second in zip(warm.paths, cold.rows, warm.rows, strict=True):
        expected = tokenizer.encode(path.read_text() + "<eos>")[:64].tolist()
        assert first.tolist() == second.tolist() == expected
    ids, offsets = warm.arrays()
    assert ids.tolist() == [id for row in warm.rows for id in row.tolist()]
    assert len(offsets) == 22
    assert sum(map(len, warm.rows)) == warm.stats.total_tokens


def test_every_kind_of_change_costs_what_it_should(cache: lmemo.SectionCache, tree: Path) -> None:
    cache.sync(tree)
    files = sorted(tree.rglob("f*.txt"))
    files[0].write_text("the changed one\n")
    run = cache.sync(tree)
    assert counts(run) == (20, 1)
    assert run.stats.miss_reasons["edited"] == 1
    assert "edited" in run.explain(files[0])

    (tree / "added.txt").write_text("another thing\n")
    run = cache.sync(tree)
    assert counts(run) == (21, 1)
    assert run.stats.miss_reasons["new"] == 1

    files[1].unlink()
    assert counts(cache.sync(tree)) == (21, 0)

    files[2].rename(tree / "renamed.txt")
    assert counts(cache.sync(tree)) == (21, 0)

    os.utime(files[3])
    assert counts(cache.sync(tree)) == (21, 0)


def test_a_change_that_keeps_size_and_time_is_seen(cache: lmemo.SectionCache, tree: Path) -> None:
    victim = tree / "victim.txt"
    for number in range(20):
        letter = "abcdefghijklmnopqrstuvwxyz"[number]
        victim.write_text(f"same size {letter}\n")
        os.utime(victim, ns=(1_600_000_000_000_000_000, 1_600_000_000_000_000_000))
        run = cache.sync(tree)
        row = run.rows[run.paths.index(victim)]
        assert row.tolist()[10] == LETTERS.index(letter), "an old row was served"


def test_files_that_did_not_change_are_not_opened(cache: lmemo.SectionCache, tree: Path) -> None:
    for path in tree.rglob("*.txt"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    time.sleep(2.1)  # The racy window: ctime cannot be set.
    assert cache.sync(tree).stats.files_read == 21
    warm = cache.sync(tree)
    assert warm.stats.files_read == 0
    assert counts(warm) == (21, 0)
    assert cache.sync(tree, rehash=True).stats.files_read == 21


def test_whatever_changes_the_ids_misses_and_is_named(tmp_path: Path, tree: Path) -> None:
    store = lmemo.Store(tmp_path / "store")

    def sync(model: Path, sequence_len: int | None = None, **options: object) -> lmemo.Run:
        tokenizer = lmemo.Tokenizer.from_pretrained_dir(model)
        return lmemo.SectionCache(store, tokenizer, sequence_len, **options).sync(tree)  # type: ignore[arg-type]

    plain = model_directory(tmp_path / "plain")
    assert counts(sync(plain)) == (0, 21)
    merged = sync(model_directory(tmp_path / "merged", extra_merge=True))
    assert counts(merged) == (0, 21)
    assert merged.stats.miss_reasons["tokenizer_changed"] == 21
    assert "tokenizer changed" in merged.explain(merged.paths[0])
    template = sync(model_directory(tmp_path / "template", template="{{ messages }}"))
    assert counts(template) == (0, 21)
    assert "chat_template changed" in template.explain(template.paths[0])
    assert template.stats.miss_reasons["options_changed"] == 21
    without = sync(plain, eos_token=False)
    assert counts(without) == (0, 21)
    assert "eos changed" in without.explain(without.paths[1])
    assert [row.tolist() for row in without.rows] == [row.tolist()[:-1] for row in sync(plain).rows]
    lengths = [len(row) for row in sync(plain).rows]

    # A length is applied to the row: never a miss, never another's cut.
    for length in (1, 7, 64, 1000, None):
        run = sync(plain, length)
        assert counts(run) == (21, 0)
        assert [len(row) for row in run.rows] == [n if length is None else min(n, length) for n in lengths]
    assert "sequence_len" in sync(plain, 7).explain(without.paths[3])
    tail = sync(plain, 7, truncation_mode="keep_end")
    assert [row.tolist() for row in tail.rows] == [row.tolist()[-7:] for row in sync(plain).rows]


def test_nasty_files(cache: lmemo.SectionCache, tmp_path: Path) -> None:
    folder = tmp_path / "nasty"
    folder.mkdir()
    for name, content in {
        "bom": b"\xef\xbb\xbf", "bom_text": b"\xef\xbb\xbfthe", "cr": b"the\rin\r", "crlf": b"the\r\nin\r\n", "lf": b"the\nin\n",
        "binary": b"the\0in", "latin": b"th\xe9", "eos": b"the<eos>", "eos_inside": b"the<eos>in", "long": b"the in " * 50_000,
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    run = cache.sync(folder)
    assert (run.stats.skipped_binary, run.stats.skipped_not_utf8, run.stats.total_sections) == (1, 1, 8)
    rows = {path.name: row.tolist() for path, row in zip(run.paths, run.rows, strict=True)}
    tokenizer = lmemo.Tokenizer.from_str(tokenizer_json())
    expected = {"bom": "<eos>", "bom_text": "the<eos>", "cr": "the\nin\n<eos>", "crlf": "the\nin\n<eos>", "lf": "the\nin\n<eos>", "eos": "the<eos>", "eos_inside": "the<eos>in<eos>"}
    assert {name: row for name, row in rows.items() if name != "long"} == {name: tokenizer.encode(text).tolist() for name, text in expected.items()}
    assert len(rows["long"]) == 64
    assert "binary" in run.explain(folder / "binary")
    assert "UTF-8" in run.explain(folder / "latin")


def test_two_documents_share_a_tree_and_flags_win(cache: lmemo.SectionCache, tree: Path, tmp_path: Path) -> None:
    for name, include in (("a.dlm", "**/*.txt"), ("b.dlm", "d1/**")):
        (tmp_path / name).write_text(f'---\ndlm_id: x\ntraining:\n  sources:\n    - path: tree\n      include: ["{include}"]\n---\nbody\n')
    assert counts(cache.sync(tmp_path / "a.dlm")) == (0, 21)
    both = cache.sync(tmp_path / "b.dlm")
    assert both.stats.cache_misses == 0
    assert both.stats.cache_hits == len(list((tree / "d1").iterdir()))
    assert cache.sync(tmp_path / "b.dlm", include=["d2/**"]).stats.total_sections == len(list((tree / "d2").iterdir()))
    (tmp_path / "doc").mkdir()
    strict = tmp_path / "doc" / "strict.dlm"
    strict.write_text("---\ntraining:\n  sources_policy: strict\n  sources: [../tree]\n---\n")
    with pytest.raises(lmemo.InvalidArgument, match="strict"):
        cache.sync(strict)


def test_a_damaged_row_is_made_again(tmp_path: Path, tree: Path) -> None:
    tokenizer = lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "model"))
    with lmemo.Store(tmp_path / "store") as store:
        expected = [row.tolist() for row in lmemo.SectionCache(store, tokenizer, None).sync(tree).rows]
    (segment,) = (tmp_path / "store" / "segments").iterdir()
    segment.chmod(0o600)
    whole = bytearray(segment.read_bytes())
    for at in range(300, len(whole) // 2, 97):
        whole[at] ^= 4
    segment.write_bytes(whole)
    with lmemo.Store(tmp_path / "store") as store:
        run = lmemo.SectionCache(store, tokenizer, None).sync(tree)
        assert [row.tolist() for row in run.rows] == expected


def test_a_home_directory_means_the_same_to_sync_and_explain(cache: lmemo.SectionCache, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree.parent))
    run = cache.sync("~/tree")
    assert run.explain("~/tree/empty.txt") == run.explain(tree / "empty.txt")


def test_a_store_within_the_tree_is_no_part_of_it(tree: Path, tmp_path: Path) -> None:
    tokenizer = lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "model"))
    (tmp_path / "link").symlink_to(tree)
    for store in (tree / "store", tmp_path / "link" / "d1" / "[store]"):
        with lmemo.Store(store) as inner:
            cache = lmemo.SectionCache(inner, tokenizer, 64)
            assert [cache.sync(tree, use_cache=use_cache).stats.total_sections for use_cache in (True, True, False)] == [21, 21, 21]
        shutil.rmtree(store)
    with lmemo.Store(tree) as around, pytest.raises(lmemo.InvalidArgument, match="the store itself"):
        lmemo.SectionCache(around, tokenizer, 64).sync(tree)


def test_no_cache_leaves_the_store_alone(cache: lmemo.SectionCache, tree: Path, tmp_path: Path) -> None:
    run = cache.sync(tree, use_cache=False)
    assert run.stats.cache_misses == 21
    rows = [row.tolist() for row in run.rows]
    assert counts(cache.sync(tree)) == (0, 21)
    assert [row.tolist() for row in cache.sync(tree).rows] == rows


def test_a_damaged_memory_is_rebuilt(cache: lmemo.SectionCache, tree: Path, tmp_path: Path) -> None:
    cache.sync(tree)
    (memory,) = (tmp_path / "store" / "sections").rglob("*.stat")
    memory.write_bytes(memory.read_bytes()[:-5] + b"xxxxx")
    run = cache.sync(tree)
    assert counts(run) == (21, 0)
    assert run.stats.files_read == 21


SYNC = """
import sys, lmemo
store = lmemo.Store(sys.argv[1])
run = lmemo.SectionCache(store, lmemo.Tokenizer.from_file(sys.argv[2]), 128, threads=2).sync(sys.argv[3])
print(run.stats.total_sections, run.stats.cache_hits, run.stats.cache_misses)
"""


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    path = tmp_path / "gpt2.json"
    path.write_text(tokenizer_vocabularies.json_of("gpt2"))
    return path


def many_files(folder: Path, number: int, words: int) -> Path:
    text = (Path(__file__).parent / "sections_test.py").read_text().split()
    for index in range(number):
        path = folder / f"d{index % 40}" / f"{index}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{index} " + " ".join(text[(index * 7 + k * k) % len(text)] for k in range(words)))
    return folder


def test_two_processes_share_the_work(tmp_path: Path, gpt2: Path) -> None:
    tree = many_files(tmp_path / "tree", 1500, 400)
    command = [sys.executable, "-c", SYNC, str(tmp_path / "store"), str(gpt2), str(tree)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = [tuple(map(int, process.communicate()[0].split())) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all(total == hits + misses == 1500 for total, hits, misses in results)
    assert 1500 <= sum(misses for _, _, misses in results) <= 1650


def test_a_killed_run_is_taken_up(tmp_path: Path, gpt2: Path) -> None:
    tree = many_files(tmp_path / "tree", 5000, 60)
    store = tmp_path / "store"
    command = [sys.executable, "-c", SYNC, str(store), str(gpt2), str(tree)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    parts = store / "writing"
    while process.poll() is None:
        if sum(path.stat().st_size for path in parts.glob("*.part")) > 200_000 if parts.is_dir() else False:
            process.kill()
        time.sleep(0.001)
    with lmemo.Store(store) as opened:
        stored = opened.stats().kinds["sections"].entries
    assert stored > 0
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, output.split())) == (5000, stored, 5000 - stored)


@pytest.mark.parametrize("of_kind", [False, True], ids=["store", "document"])
def test_a_corpus_beyond_the_limit_hits_what_the_limit_allows(tmp_path: Path, gpt2: Path, of_kind: bool) -> None:
    tree = many_files(tmp_path / "tree", 1200, 2000)
    tokenizer = lmemo.Tokenizer.from_file(gpt2)
    limit = 12 << 20
    rates = []
    for _ in range(3):
        with lmemo.Store(tmp_path / "store", max_bytes=0 if of_kind else limit) as store:
            largest = 0

            def look(_: object, store: lmemo.Store = store) -> None:
                nonlocal largest
                on_disk = sum(path.stat().st_size for path in (tmp_path / "store" / "segments").iterdir() if path.exists())
                largest = max(largest, store.stats().kinds["sections"].stored_bytes if of_kind else on_disk)

            run = lmemo.SectionCache(store, tokenizer, 128).sync(tree, max_bytes=limit if of_kind else None, progress=look)
            look(None)
            rates.append(run.stats.hit_rate)
            assert run.stats.total_sections == 1200
            assert 0.9 * limit < largest <= limit
    whole = lmemo.SectionCache(lmemo.Store(tmp_path / "all"), tokenizer, 128).sync(tree).stats.cache_bytes_after
    best = limit / whole
    assert best < 0.9
    assert rates[0] == 0
    assert all(rate >= 0.9 * best for rate in rates[1:]), (rates, best)


def test_what_no_tree_leads_to_goes_first(tmp_path: Path, gpt2: Path) -> None:
    """The least recently used would be those of the tree that was synced first: still in use, and so they stay."""
    tokenizer = lmemo.Tokenizer.from_file(gpt2)
    trees = [many_files(tmp_path / name, 120, 1000) for name in ("first", "edited", "new")]
    for number, tree in enumerate(trees):
        for path in tree.rglob("*.txt"):
            path.write_text(f"{number} {path.read_text()}")

    def sync(tree: Path) -> lmemo.Run:
        with lmemo.Store(tmp_path / "store", max_bytes=limit) as store:
            return lmemo.SectionCache(store, tokenizer, 128).sync(tree)

    with lmemo.Store(tmp_path / "one") as store:
        one = lmemo.SectionCache(store, tokenizer, 128).sync(trees[0]).stats.cache_bytes_after
    limit = 4 * one
    assert counts(sync(trees[0])) == counts(sync(trees[1])) == (0, 120)
    for path in trees[1].rglob("*.txt"):
        path.write_text(f"edited {path.read_text()}")
    assert counts(sync(trees[1])) == (0, 120)  # Three of four are taken now, one of them by orphans.
    assert counts(sync(trees[2])) == (0, 120)
    assert [counts(sync(tree)) for tree in trees] == [(120, 0)] * 3


def test_a_killed_first_run_leaves_no_orphans(tmp_path: Path, gpt2: Path) -> None:
    tree = many_files(tmp_path / "tree", 2000, 300)
    command = [sys.executable, "-c", SYNC, str(tmp_path / "store"), str(gpt2), str(tree)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    parts = tmp_path / "store" / "writing"
    while process.poll() is None:
        if parts.is_dir() and sum(path.stat().st_size for path in parts.glob("*.part")) > 100_000:
            process.kill()
        time.sleep(0.001)
    with lmemo.Store(tmp_path / "store"):  # Takes over what the killed one left.
        pass
    shown = subprocess.run([Path(sys.executable).parent / "lmemo", "sections", "show", "--store", tmp_path / "store", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["entry_count"] > 0
    assert json.loads(shown.stdout)["orphans"] == 0


def test_a_document_gives_length_limit_and_whether_to_cache(tmp_path: Path, tree: Path) -> None:
    tokenizer = lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "model"))
    document = tmp_path / "doc.dlm"

    def write(settings: str) -> None:
        document.write_text(f"---\ntraining:\n  sources: [tree]\n  {settings}\n---\n")

    store = lmemo.Store(tmp_path / "store")
    cache = lmemo.SectionCache(store, tokenizer)
    write("cache: {enabled: false}")
    assert counts(cache.sync(document)) == (0, 21)
    assert store.stats().entries == 0
    assert counts(cache.sync(document, use_cache=True)) == (0, 21)
    assert store.stats().entries == 21
    write("sequence_len: 5")
    run = cache.sync(document)
    assert (max(map(len, run.rows)), run.sequence_len) == (5, 5)
    assert max(map(len, lmemo.SectionCache(store, tokenizer, 7).sync(document).rows)) == 7
    assert cache.sync(tree).sequence_len == 2048
    assert lmemo.SectionCache(store, tokenizer, None).sync(document).sequence_len is None
    with pytest.raises(lmemo.InvalidArgument, match="sequence_len"):
        lmemo.SectionCache(store, tokenizer, 0)

    write("cache: {max_bytes: 4KiB}")
    with lmemo.Store(tmp_path / "small") as small:
        run = lmemo.SectionCache(small, tokenizer).sync(document)
        assert run.stats.total_sections == 21
        assert 0 < small.stats().kinds["sections"].stored_bytes <= 4096
        assert small.stats().kinds["sections"].max_bytes == 4096


def test_prune_goes_by_the_document(tmp_path: Path, tree: Path) -> None:
    store = lmemo.Store(tmp_path / "store")
    cache = lmemo.SectionCache(store, lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "model")))
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text((tree / "d0" / "f00.txt").read_text())  # Both trees use it.
    (other / "b.txt").write_text("the other thing\n")
    cache.sync([tree, other])
    document = tmp_path / "doc.dlm"
    document.write_text("---\ntraining:\n  sources: [tree]\n  cache: {prune_older_than_days: 0}\n---\n")
    assert cache.prune(tree).entries == cache.prune().entries == cache.prune(document, older_than="12h").entries == 0
    assert cache.prune(document).entries == 20
    assert store.stats().kinds["sections"].entries == 2
    assert cache.sync(tree).stats.miss_reasons["evicted"] == 20
    assert cache.prune(older_than=0).entries == 22
    with pytest.raises(lmemo.InvalidArgument, match="on disk"):
        lmemo.SectionCache(lmemo.MemoryStore(), lmemo.Tokenizer.from_str(tokenizer_json())).prune()


def test_what_will_not_fit_is_told_first(tmp_path: Path, tree: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = lmemo.Tokenizer.from_pretrained_dir(model_directory(tmp_path / "model"))
    told_at: list[int] = []
    with lmemo.Store(tmp_path / "store") as store:
        lmemo.SectionCache(store, tokenizer).sync(tree, max_bytes=4096, progress=lambda _: told_at.append(len(caplog.messages)))
    (text,) = [text for text in caplog.messages if "this corpus takes about" in text]
    assert "raise max_bytes" in text and "narrow the corpus" in text
    assert caplog.messages.index(text) == 0
    assert not told_at or told_at[0] >= 1


def test_a_tokenizer_that_only_huggingface_runs(tmp_path: Path, tree: Path) -> None:
    content = json.loads(tokenizer_json())
    content["truncation"] = {"direction": "Right", "max_length": 5, "strategy": "OnlySecond", "stride": 0}  # Ours refuses it.
    tokenizer = lmemo.Tokenizer.from_str(json.dumps(content))
    assert tokenizer.engine == "huggingface"
    theirs = lmemo.Tokenizer.from_str(tokenizer_json())
    cache = lmemo.SectionCache(lmemo.Store(tmp_path / "store"), tokenizer, None, eos_token="<eos>", threads=4)
    assert counts(cache.sync(tree)) == (0, 21)
    warm = cache.sync(tree)
    assert counts(warm) == (21, 0)
    for path, row in zip(warm.paths, warm.rows, strict=True):
        assert row.tolist() == theirs.encode(path.read_text() + "<eos>").tolist()
    # Its rows are its own: another engine, another identity.
    assert counts(lmemo.SectionCache(lmemo.Store(tmp_path / "store"), theirs, None, eos_token="<eos>").sync(tree)) == (0, 21)


def test_an_engine_that_answers_otherwise_under_the_same_identity_is_an_error(tmp_path: Path, tree: Path) -> None:
    content = json.loads(tokenizer_json())
    content["truncation"] = {"direction": "Right", "max_length": 5, "strategy": "OnlySecond", "stride": 0}
    store = lmemo.Store(tmp_path / "store")
    tokenizer = lmemo.Tokenizer.from_str(json.dumps(content))
    assert counts(lmemo.SectionCache(store, tokenizer).sync(tree)) == (0, 21)
    changed = lmemo.Tokenizer.from_str(json.dumps(content))
    changed._engine._tokenizer.add_tokens(["quick"])  # type: ignore[union-attr]
    assert changed.fingerprint == tokenizer.fingerprint
    with pytest.raises(lmemo.Incompatible, match="no longer gives the ids"):
        lmemo.SectionCache(store, changed).sync(tree)
    assert counts(lmemo.SectionCache(store, tokenizer).sync(tree)) == (21, 0)

    content = json.loads(tokenizer_vocabularies.json_of("gpt2"))
    content["model"]["dropout"] = 0.5
    with pytest.raises(lmemo.Incompatible, match="other ids each time"):
        lmemo.SectionCache(store, lmemo.Tokenizer.from_str(json.dumps(content))).sync(tree)
