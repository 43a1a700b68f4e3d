"""The command line as people meet it: real processes, a real terminal, a real shell.

A script in scripts/ says what to run; the file next to it says what that prints. After a wanted change, renew them:

    LMEMO_RENEW=1 .venv/bin/python -m pytest tests/cli/cli_test.py
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import lmemo as package
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lmemo_process import ROOT, Lmemo, flip_byte, make_store, name_of, normalised, programs, segment_in  # noqa: E402

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.sh"))

PRELUDE = """
set -u
# Shows the command, its standard output, its standard error (after "! ") and its exit code.
run() {
  echo "\\$ lmemo $*"
  lmemo "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local code=$?
  cat "$SCRATCH/out"
  sed 's/^/! /' "$SCRATCH/err"
  echo "[$code]"
}
make_store() { "$TEST_PYTHON" "$TEST_HELPERS" make_store "$@"; }
flip_byte() { "$TEST_PYTHON" "$TEST_HELPERS" flip_byte "$@"; }
"""


@pytest.fixture(params=programs(), ids=name_of)
def lmemo(request: pytest.FixtureRequest, tmp_path: Path) -> Lmemo:
    return Lmemo(request.param, tmp_path)


@pytest.fixture
def stored(lmemo: Lmemo) -> Lmemo:
    """A program whose store holds three entries of kind tokens and one of kind forward."""
    make_store(lmemo.directory / "store")
    lmemo.environment["LMEMO_STORE"] = str(lmemo.directory / "store")
    return lmemo


@pytest.mark.parametrize("home", [None, ""])
def test_without_a_home_the_store_is_where_the_password_database_says(lmemo: Lmemo, home: str | None) -> None:
    environment = {name: value for name, value in lmemo.environment.items() if name != "HOME"} | ({} if home is None else {"HOME": home})
    expected = f"{pwd.getpwuid(os.getuid()).pw_dir}/.cache/lmemo"
    asked = subprocess.run([lmemo.program, "config", "get", "store"], cwd=lmemo.directory, env=environment, capture_output=True, text=True, timeout=60)
    assert (asked.stdout, asked.returncode) == (expected + "\n", 0), asked.stderr
    look = "import lmemo\ntry: print(lmemo.Store(read_only=True, create=False).path)\nexcept lmemo.Error as error: print(error)"
    asked = subprocess.run([sys.executable, "-c", look], cwd=lmemo.directory, env=environment, capture_output=True, text=True, timeout=60)
    assert expected in asked.stdout, asked.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_what_stands_next_to_it(lmemo: Lmemo, script: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    helpers = Path(__file__).parent / "script_helpers.py"
    ran = subprocess.run(
        ["bash", "-c", PRELUDE + script.read_text()],
        cwd=lmemo.directory,
        env=lmemo.environment
        | {
            "SCRATCH": str(tmp_path_factory.mktemp("scratch")),
            "TEST_PYTHON": sys.executable,
            "TEST_HELPERS": str(helpers),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    printed = normalised(ran.stdout, lmemo.directory)
    expected = script.with_suffix(".out")
    if os.environ.get("LMEMO_RENEW"):
        expected.write_text(printed)
    assert printed == expected.read_text()


# ---------------------------------------------------------------------------------------------------- for programs


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["show", "--entries", "9"],
        ["verify"],
        ["repair"],
        ["prune", "--older-than", "0s", "--dry-run"],
        ["prune", "--older-than", "1d", "--yes"],
        ["evict", "--to", "1GiB", "--yes"],
        ["compact"],
        ["clear", "--yes"],
        ["explain", "tokens", "section:int=1"],
        ["config"],
        ["config", "get", "store"],
        ["config", "path"],
        ["forward", "show"],
        ["forward", "clear", "--yes"],
        ["completions", "zsh"],
        ["manual"],
        ["config", "path", "--help"],
    ],
    ids=" ".join,
)
def test_json_is_one_versioned_object(stored: Lmemo, words: list[str]) -> None:
    ran = stored.run(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["lmemo"] == 1
    assert words[0] == answer["command"].split()[0]


def test_json_of_inspect_names_every_record(stored: Lmemo) -> None:
    ran = stored.run("inspect", str(segment_in(stored.directory / "store")), "--json", "--records", "all")
    answer = json.loads(ran.stdout)
    assert [record["kind"] for record in answer["records"]] == ["tokens"] * 3 + ["forward"]
    assert answer["records"][0]["fields"][1] == {"name": "section", "type": "int", "value": 0}
    assert all(block["is_sound"] for block in answer["blocks"])


def test_every_file_that_lmemo_writes_can_be_inspected_and_damage_in_it_is_seen(lmemo: Lmemo) -> None:
    tokenizer = str(ROOT / "examples" / "tokenizer")
    (lmemo.directory / "tree").mkdir()
    (lmemo.directory / "tree" / "a.txt").write_text("some words")
    (lmemo.directory / "rows.jsonl").write_text('{"text": "some words"}\n' * 3)
    for words in (
        ["sections", "sync", "tree", "-t", tokenizer],
        ["chunks", "build", "rows.jsonl", "-t", tokenizer, "-o", "chunks"],
        ["dataset", "build", "--train-file", "rows.jsonl", "-t", tokenizer, "-o", "set"],
    ):
        assert lmemo.run(*words, "--store", "store").returncode == 0
    package.Tokenizer.from_pretrained_dir(tokenizer).save_pieces(lmemo.directory / "pieces")
    (lmemo.directory / "trace.jsonl").write_text('{"op": "a"}\n{"op": "b"}\n')
    files = {
        "a memory": next((lmemo.directory / "store/sections").glob("*/*.stat")),
        "metrics": lmemo.directory / "store/metrics.db",
        "pieces": lmemo.directory / "pieces",
        "a trace": lmemo.directory / "trace.jsonl",
        "metadata": lmemo.directory / "set/metadata.json",
        "chunk metadata": lmemo.directory / "chunks/metadata.json",
        "a plan": next((lmemo.directory / "chunks/plan").iterdir()),
        "a registry": lmemo.directory / "chunks/registry.seg",
        "a chunk": next((lmemo.directory / "chunks/chunks").iterdir()),
    }
    for name, file in files.items():
        shown, told = lmemo.run("inspect", str(file)), lmemo.run("inspect", str(file), "--json")
        assert (shown.returncode, told.returncode) == (0, 0), f"{name}: {shown.stderr}"
        assert json.loads(told.stdout)["file_bytes"] == file.stat().st_size
    assert "a.txt" in lmemo.run("inspect", str(files["a memory"])).stdout
    for name in ("a memory", "pieces", "a trace", "metadata"):
        data = files[name].read_bytes()
        files[name].write_bytes(data[: len(data) - 3])
        assert lmemo.run("inspect", str(files[name])).returncode == 4, name


def test_a_link_to_a_directory_is_as_good_as_the_directory(lmemo: Lmemo) -> None:
    tokenizer = str(ROOT / "examples" / "tokenizer")
    (lmemo.directory / "tree").mkdir()
    (lmemo.directory / "tree" / "a.txt").write_text("some words")
    (lmemo.directory / "rows.jsonl").write_text('{"text": "some words"}\n' * 3)
    for name in ("store", "chunks", "set", "cache"):
        (lmemo.directory / f"disk/{name}").mkdir(parents=True)
        (lmemo.directory / name).symlink_to(f"disk/{name}")
    for words in (
        ["sections", "sync", "tree", "-t", tokenizer],
        ["verify"],
        ["repair"],
        ["show"],
        ["chunks", "build", "rows.jsonl", "-t", tokenizer, "-o", "chunks"],
        ["chunks", "verify", "chunks"],
        ["report", "--chunks", "chunks"],
        ["dataset", "build", "--train-file", "rows.jsonl", "-t", tokenizer, "-o", "set"],
        ["dataset", "check", "set", "--train-file", "rows.jsonl", "-t", tokenizer],
    ):
        ran = lmemo.run(*words, "--store", "store")
        assert (ran.returncode, "warning" in ran.stderr) == (0, False), f"{words}: {ran.stderr}"
    for word in ("sync", "sync"):  # The store does not exist yet, and its parent is a link.
        ran = lmemo.run("sections", word, "tree", "-t", tokenizer, XDG_CACHE_HOME=str(lmemo.directory / "cache"))
        assert ran.returncode == 0, ran.stderr
    assert package.ChunkSet(lmemo.directory / "chunks").is_complete
    with package.Store(lmemo.directory / "store") as store:
        assert store.stats().entries > 0 and store.verify().is_clean


def test_errors_are_json_too_and_still_words(lmemo: Lmemo) -> None:
    ran = lmemo.run("show", "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["code"] == "io_error"
    assert ran.stderr.startswith("error: io_error: no store at ")


def test_a_name_that_is_not_utf8_is_no_trouble(stored: Lmemo) -> None:
    odd = stored.directory / os.fsdecode(b"caf\xe9\x1b[31m")
    make_store(odd)
    shown = subprocess.run(
        [stored.program, "show", "--store", odd], cwd=stored.directory, env=stored.environment, capture_output=True
    )
    assert shown.returncode == 0, shown.stderr
    assert b"\x1b" not in shown.stdout
    as_json = subprocess.run(
        [stored.program, "show", "--json", "--store", odd], cwd=stored.directory, env=stored.environment, capture_output=True
    )
    assert json.loads(as_json.stdout)["entries"] == 4


# ------------------------------------------------------------------------------------------------------ tokenizer

TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2}},
}  # fmt: skip


def test_a_tokenizer_is_compared_with_huggingface_where_python_is(lmemo: Lmemo) -> None:
    (lmemo.directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    corpus = lmemo.directory / "corpus" / "deeper"
    corpus.mkdir(parents=True)
    (corpus / "a.txt").write_text("a b c")
    (corpus.parent / "b.txt").write_text("b a")
    (corpus.parent / "c.bin").write_bytes(b"\xff")
    ran = lmemo.run("tokenizer", "check", ".", "corpus", "--json")
    if name_of(lmemo.program) == "stand-alone":
        assert ran.returncode == 1
        assert "pip install lmemo tokenizers" in ran.stderr
        return
    pytest.importorskip("tokenizers")
    answer = json.loads(ran.stdout)
    assert ran.returncode == 0, ran.stderr
    assert (answer["documents"], answer["skipped"], answer["ids"], answer["mismatches"]) == (2, 1, 5, 0)
    words = lmemo.run("tokenizer", "check", "tokenizer.json")  # The traps, and the texts that come with lmemo.
    assert words.returncode == 0, words.stderr
    assert "no document differs" in words.stdout


@pytest.mark.parametrize("lmemo", [p for p in programs() if name_of(p) != "stand-alone"], ids=name_of, indirect=True)
def test_a_document_that_differs_is_named_with_the_place(lmemo: Lmemo) -> None:
    """Two tokenizers instead of two engines: the directory changes between the two that read it."""
    (lmemo.directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (lmemo.directory / "text.txt").write_text("a b a b b a")
    program = (
        "import pathlib, sys, lmemo.__main__, lmemo._oracle\n"
        "def other(path):\n"
        "    name, traps, encode = lmemo._oracle.huggingface_oracle(path)\n"
        "    return name, traps, lambda texts: [[*ids[:4], 0, *ids[5:]] for ids in encode(texts)]\n"
        "lmemo.__main__.huggingface_oracle = other\n"
        "sys.exit(lmemo.__main__.main())\n"
    )
    python = lmemo.program.parent / "python"
    ran = subprocess.run([python, "-c", program, "tokenizer", "check", "tokenizer.json", "text.txt", "--json"], cwd=lmemo.directory, env=lmemo.environment, capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 4, ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["mismatches"] == 1
    first = answer["first_difference"]
    assert first["document"].endswith("text.txt")
    assert (first["position"], first["expected"], first["found"], first["text_before"]) == (4, [0, 1], [2, 1], "a b a b")


# ------------------------------------------------------------------------------------------------------- demo


def test_the_demo_computes_once_and_recomputes_only_what_changed(lmemo: Lmemo) -> None:
    scratch = lmemo.directory / "tmp"
    scratch.mkdir()
    del lmemo.environment["LMEMO_CORPUS"]  # The shipped texts are found without help.
    ran = lmemo.run("demo", "--json", TMPDIR=str(scratch))
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert (answer["lmemo"], answer["command"]) == (1, "demo")
    files = answer["files"]
    assert files > 50
    sections, chunks, dataset = answer["sections"], answer["chunks"], answer["dataset"]
    assert (sections["total_sections"], sections["warm_hits"]) == (files, files)
    assert (sections["edited_hits"], sections["edited_misses"]) == (files - 1, 1)
    assert chunks["was_killed"]
    assert 0 < chunks["missing_after_kill"] == chunks["filled"] < chunks["total_chunks"]
    assert chunks["tokens"] == chunks["tokens_in"] > 100_000
    assert dataset["train_size"] > dataset["eval_size"] > 0
    assert not dataset["warm_was_built"]
    # Only the report is left, and it stands alone.
    [left] = scratch.iterdir()
    assert [path.name for path in left.iterdir()] == ["report.html"]
    assert answer["report"] == str(left / "report.html")
    assert "</html>" in (left / "report.html").read_text()
    if name_of(lmemo.program) == "console-script":  # It has Python, torch and transformers at hand.
        for face in ("forward", "activations"):
            assert answer[face]["cold_passes"] > 0
            assert answer[face]["warm_passes"] == 0
    else:
        assert answer["forward"] is None


def test_the_demo_leaves_everything_where_it_is_told_to(tmp_path: Path) -> None:
    lmemo = Lmemo(programs()[0], tmp_path)  # Without Python and its torch: they were seen above.
    (lmemo.directory / "mine").mkdir()
    (lmemo.directory / "mine" / "thesis.txt").write_text("not to be lost")
    refused = lmemo.run("demo", "--output", "mine")
    assert refused.returncode == 2
    assert "--output" in refused.stderr
    assert (lmemo.directory / "mine" / "thesis.txt").exists()
    (lmemo.directory / "texts").mkdir()
    (lmemo.directory / "texts" / "a.txt").write_text("one two three four five six")
    for _ in range(2):  # The second time over what the first one left.
        ran = lmemo.run("demo", "--corpus", "texts", "--output", "tour", "--quiet")
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == f"{lmemo.directory / 'tour' / 'report.html'}\n"
    shown = lmemo.run("show", "--json", "--store", "tour/store")
    assert json.loads(shown.stdout)["entries"] > 0


def test_the_demo_leaves_nothing_but_what_there_is_to_look_at(tmp_path: Path) -> None:
    lmemo = Lmemo(programs()[-1], tmp_path)
    assert lmemo.run("demo", "--output", "tour").returncode == 0
    left = {path.name for path in (tmp_path / "tour").iterdir()}
    assert left == {".lmemo-demo", "lmemo.toml", "documents.jsonl", "edited", "store", "chunks", "dataset", "report.html"}


def test_the_demo_takes_other_texts(tmp_path: Path) -> None:
    lmemo = Lmemo(programs()[0], tmp_path)
    (lmemo.directory / "texts").mkdir()
    (lmemo.directory / "texts" / "a.txt").write_text("one two three four five six")
    ran = lmemo.run("demo", "--corpus", "texts")
    assert ran.returncode == 0, ran.stderr
    assert "1 file, 27 B of text" in ran.stdout
    assert "in numbers" in ran.stdout
    missing = lmemo.run("demo", "--corpus", "none")
    assert missing.returncode == 2
    assert "--corpus" in missing.stderr


# --------------------------------------------------------------------------------------------- signals and pipes


def test_ctrl_c_in_the_middle_gives_130_and_leaves_nothing_behind(lmemo: Lmemo) -> None:
    scratch = lmemo.directory / "tmp"
    scratch.mkdir()
    lmemo.environment["TMPDIR"] = str(scratch)
    for _ in range(50):  # On a busy machine the demo may be through before the signal reaches it; then once more.
        process = lmemo.start("demo")
        while process.poll() is None and not list(scratch.glob("*/store")):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert list(scratch.iterdir()) == []
        if process.returncode != 0:
            break
    assert process.returncode == 130
    assert "interrupted" in errors


def test_ctrl_c_during_verify_gives_130(lmemo: Lmemo) -> None:
    make_store(lmemo.directory / "s")

    # It comes once the command lets it, so that this does not depend on time.
    def press_ctrl_c_and_hold_it_back() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)

    ran = lmemo.run("verify", "--store", "s", preexec_fn=press_ctrl_c_and_hold_it_back)
    assert ran.returncode == 130
    assert ran.stdout == ""
    assert lmemo.run("verify", "--store", "s").returncode == 0


def test_a_reader_that_leaves_is_no_failure(stored: Lmemo) -> None:
    make_store(stored.directory / "many", tokens=5000)
    ran = subprocess.run(
        ["bash", "-c", "lmemo show -q --store many | head -n 1; echo ${PIPESTATUS[0]}"],
        cwd=stored.directory,
        env=stored.environment,
        capture_output=True,
        text=True,
    )
    digest, code = ran.stdout.split()
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert code == "0"
    assert ran.stderr == ""


def test_a_full_disk_behind_the_output_is_a_failure(stored: Lmemo) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [stored.program, "show"], env=stored.environment, cwd=stored.directory, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ran.returncode == 1
    assert "No space left on device" in ran.stderr


# ---------------------------------------------------------------------------------------------------- at a terminal


def test_colour_on_a_terminal_and_only_there(stored: Lmemo) -> None:
    assert "\x1b[1m" in stored.on_terminal("show")[1]
    assert "\x1b[32m" in stored.on_terminal("verify")[1]
    assert "\x1b" not in stored.run("show").stdout
    assert "\x1b" not in stored.on_terminal("show", "--color", "never")[1]
    assert "\x1b" not in stored.on_terminal("show", NO_COLOR="1")[1]
    assert "\x1b" not in stored.on_terminal("show", TERM="dumb")[1]


def test_a_bar_on_a_terminal_and_none_in_a_log(lmemo: Lmemo) -> None:
    tree = lmemo.directory / "tree"
    for copy in range(30):  # Enough work for a bar to be worth showing; each copy is text of its own.
        for file in sorted((ROOT / "examples" / "corpus").iterdir()):
            target = tree / str(copy) / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"{copy}\n" + file.read_text())
    sync = ["sections", "sync", "tree", "--tokenizer", str(ROOT / "examples" / "tokenizer"), "--threads", "1", "--sequence-len", "99999", "--store"]
    code, shown = lmemo.on_terminal(*sync, "one")
    assert code == 0, shown
    assert re.search("█.*tokenise: ", shown), shown
    assert "█" not in lmemo.on_terminal(*sync, "two", "-q")[1]
    logged = lmemo.run(*sync, "three")
    assert "█" not in logged.stdout + logged.stderr


def test_at_a_terminal_a_destructive_command_asks(stored: Lmemo) -> None:
    code, shown = stored.on_terminal("clear", answer=b"n\n")
    assert code == 1
    assert "Remove 4 entries, " in shown
    assert "nothing was removed" in shown
    code, shown = stored.on_terminal("clear", answer=b"\x03")
    assert code == 130
    code, shown = stored.on_terminal("clear", answer=b"\x04")
    assert code == 1
    assert len(stored.run("show", "-q").stdout.split()) == 4
    code, shown = stored.on_terminal("clear", answer=b"y\n")
    assert code == 0
    assert "removed 4 entries" in shown
    assert stored.run("show", "-q").stdout == ""


def test_a_damaged_record_cannot_steer_the_terminal(lmemo: Lmemo) -> None:
    code = "import sys, lmemo\nwith lmemo.Store(sys.argv[1]) as s: s.put(lmemo.Key.of('k', text='\\x1b[2Jboo'), b'v')"
    subprocess.run([sys.executable, "-c", code, str(lmemo.directory / "s")], check=True)
    assert "\x1b[2J" not in lmemo.on_terminal("show", "--store", "s", "--entries", "1")[1]
    assert "\x1b[2J" not in lmemo.on_terminal("explain", "k", "text=\x1b[2Jbo", "--store", "s")[1]


# ------------------------------------------------------------------------------------------------------- completions


def complete(lmemo: Lmemo, line: str) -> list[str]:
    """What bash offers when Tab is pressed at the end of the line."""
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith(" ") else [])
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""
source <(lmemo completions bash)
COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
_lmemo
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "-c", script], cwd=lmemo.directory, env=lmemo.environment, capture_output=True, text=True)
    assert ran.stderr == ""
    return [word for word in ran.stdout.splitlines() if word]


def test_bash_completes_from_the_tables(lmemo: Lmemo) -> None:
    (lmemo.directory / "some dir").mkdir()
    (lmemo.directory / "some file").touch()
    assert complete(lmemo, "lmemo ver") == ["verify"]
    assert {"show", "config", "completions", "demo"} <= set(complete(lmemo, "lmemo "))
    assert complete(lmemo, "lmemo config ") == ["list", "get", "path"]
    assert complete(lmemo, "lmemo --store x config g") == ["get"]
    assert complete(lmemo, "lmemo completions ") == ["bash", "zsh", "fish"]
    assert complete(lmemo, "lmemo prune --older") == ["--older-than"]
    assert "--kind" not in complete(lmemo, "lmemo verify --")
    assert "--store" in complete(lmemo, "lmemo verify --")
    assert complete(lmemo, "lmemo show --color a") == ["auto", "always"]
    assert complete(lmemo, "lmemo show --color=n") == ["never"]
    assert complete(lmemo, "lmemo show --color=") == ["auto", "always", "never"]
    assert complete(lmemo, "lmemo show --store some") == ["some dir"]
    assert sorted(complete(lmemo, "lmemo inspect some")) == ["some dir", "some file"]
    assert complete(lmemo, "lmemo evict --to ") == []
    assert complete(lmemo, "lmemo forward ") == ["trace", "show", "clear"]
    assert sorted(complete(lmemo, "lmemo forward trace some")) == ["some dir", "some file"]
    assert "--adapter" in complete(lmemo, "lmemo forward clear --")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells_name_every_command(lmemo: Lmemo, shell: str) -> None:
    script = lmemo.run("completions", shell).stdout
    for command in ["show", "verify", "repair", "prune", "evict", "compact", "clear", "explain", "inspect", "forward", "config", "demo"]:
        assert re.search(rf"\b{command}\b", script), command


# ------------------------------------------------------------------------------------------------------- exit codes


def test_damage_is_4_a_loss_is_3_and_then_all_is_well(stored: Lmemo) -> None:
    flip_byte(segment_in(stored.directory / "store"), b"ttt")
    assert stored.run("verify").returncode == 4
    assert stored.run("verify", "--json").returncode == 4
    assert stored.run("repair").returncode == 3
    assert stored.run("verify").returncode == 0
    assert stored.run("repair").returncode == 0
    assert len(stored.run("show", "-q").stdout.split()) == 3


def test_a_background_job_does_not_die_of_ctrl_c(lmemo: Lmemo) -> None:
    lmemo.environment["TMPDIR"] = str(lmemo.directory)
    process = subprocess.Popen(
        [lmemo.program, "demo", "-q"],
        cwd=lmemo.directory,
        env=lmemo.environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    while process.poll() is None and not list(lmemo.directory.glob("lmemo-demo-*/store")):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0


def test_what_is_said_to_closed_streams_does_not_land_in_a_file(lmemo: Lmemo) -> None:
    (lmemo.directory / "rows.jsonl").write_text('{"text": "one"}\n' * 50)
    tokenizer = ROOT / "examples" / "tokenizer"

    def close_streams() -> None:
        for stream in (0, 1, 2):
            os.close(stream)

    build = lmemo.run("chunks", "build", "rows.jsonl", "--tokenizer", str(tokenizer), "--output", "chunks", "--progress", "json", preexec_fn=close_streams)
    assert build.returncode == 1  # Its result could not be written, and nobody heard.
    export = ("chunks", "export", "chunks", "--to", "npy", "--progress", "json", "--output")
    lmemo.run(*export, "unheard", preexec_fn=close_streams)
    assert lmemo.run(*export, "heard").returncode == 0
    assert lmemo.run("chunks", "verify", "chunks").returncode == 0
    files = [sorted(path.relative_to(top) for path in top.rglob("*")) for top in (lmemo.directory / "heard", lmemo.directory / "unheard")]
    assert files[0] and files[0] == files[1]
    assert all((lmemo.directory / "heard" / name).read_bytes() == (lmemo.directory / "unheard" / name).read_bytes() for name in files[0])
