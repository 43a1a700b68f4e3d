"""Kills in the middle, several processes at once, and what a trainer makes of the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import datasets
import pytest

import lmemo
from dataset_fixtures import arrow_bytes, make_model, sentences, write_lines
from lmemo import dataset

ENSURE = """
import sys, lmemo.dataset as d
outcome = d.build(sys.argv[1], note=lambda line: print("note:", line, flush=True))
print("built" if outcome.was_built else "found", outcome.counts["train_rows"], flush=True)
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    make_model(tmp_path / "model")
    # Enough for a build to be under way for a while: some seconds with one worker.
    rows = [{"text": text} for text in sentences(1500, longest=60)]
    with open(tmp_path / "train.jsonl", "w", encoding="utf-8") as file:
        for round in range(60):
            file.writelines(json.dumps({"text": f"{round} {row['text']}"}) + "\n" for row in rows)
    values = {
        "model_name": str(tmp_path / "model"),
        "train_file": str(tmp_path / "train.jsonl"),
        "cached_tokens_dir": str(tmp_path / "set"),
        "max_length": 128,
        "workers": 1,
    }
    (tmp_path / "config.json").write_text(json.dumps(values))
    return tmp_path / "config.json"


def start(config: Path, store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ENSURE, str(config)],
        env=os.environ | {"LMEMO_STORE": str(store)},
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.002)


def building(directory: Path) -> list[Path]:
    return list((directory / ".lmemo").glob("building-*/tokenized_dataset/train/*.arrow"))


def test_a_build_that_is_killed_leaves_the_old_set(config: Path, tmp_path: Path) -> None:
    values = json.loads(config.read_text())
    small = write_lines(tmp_path / "small.jsonl", [{"text": text} for text in sentences(50)])
    old = values | {"train_file": str(small)}
    dataset.build(old, store=lmemo.MemoryStore())
    before = arrow_bytes(tmp_path / "set")
    opened = datasets.load_from_disk(str(tmp_path / "set" / "tokenized_dataset"))

    for round in range(3):
        left = building(tmp_path / "set")  # By those killed before, until somebody tidies up.
        process = start(config, tmp_path / f"store{round}")
        # From the first byte on to near the end.
        wait_for(
            lambda: any(path.stat().st_size > round * 3_000_000 for path in building(tmp_path / "set") if path not in left), "a build"
        )
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert building(tmp_path / "set")  # It did die in the middle.
        assert arrow_bytes(tmp_path / "set") == before
        assert dataset.check(old).is_valid
        loaded = datasets.load_from_disk(str(tmp_path / "set" / "tokenized_dataset"))
        assert loaded["train"].to_list() == opened["train"].to_list()

    # What a killed build had stored is found by the next one, which also tidies up.
    outcome = dataset.build(values, store=lmemo.Store(tmp_path / "store2"))
    assert outcome.was_built and outcome.counts["train_rows"] == 90_000
    assert outcome.counts["rows_from_store"] > 0
    assert len(list((tmp_path / "set" / ".lmemo").glob("*-*"))) == 1
    # Who had the old set open still reads it.
    assert [len(ids) for ids in opened["train"]["input_ids"]] and opened["train"].num_rows == 50
    fresh = values | {"cached_tokens_dir": str(tmp_path / "fresh")}
    dataset.build(fresh, store=lmemo.MemoryStore())
    assert arrow_bytes(tmp_path / "set") == arrow_bytes(tmp_path / "fresh")


def test_four_at_once_build_once_though_the_first_builder_dies(config: Path, tmp_path: Path) -> None:
    processes = [start(config, tmp_path / "store") for _ in range(4)]
    builder_file = tmp_path / "set" / ".lmemo" / "builder"
    wait_for(lambda: building(tmp_path / "set") and builder_file.exists(), "a builder")
    builder = int(builder_file.read_text().split()[1])
    killed = next(process for process in processes if process.pid == builder)
    killed.send_signal(signal.SIGSTOP)  # So that the others come while it builds, however busy the machine is.
    others = [process for process in processes if process is not killed]
    assert others[0].stdout
    assert f"waiting for process {builder}" in others[0].stdout.readline()
    killed.send_signal(signal.SIGKILL)
    told = [process.communicate(timeout=120)[0].splitlines() for process in others]
    assert sorted(lines[-1] for lines in told) == ["built 90000", "found 90000", "found 90000"]
    values = json.loads(config.read_text())
    assert dataset.check(values).is_valid
    dataset.build(values | {"cached_tokens_dir": str(tmp_path / "fresh")}, store=lmemo.MemoryStore())
    assert arrow_bytes(tmp_path / "set") == arrow_bytes(tmp_path / "fresh")


def test_readers_never_see_halves_of_two_sets(tmp_path: Path) -> None:
    make_model(tmp_path / "model")
    write_lines(tmp_path / "train.jsonl", [{"text": text} for text in sentences(200)])
    values = {
        "model_name": str(tmp_path / "model"),
        "train_file": str(tmp_path / "train.jsonl"),
        "cached_tokens_dir": str(tmp_path / "set"),
        "eval_split": 0.5,
    }
    config = tmp_path / "config.json"
    config.write_text(json.dumps(values))
    code = (
        "import sys, lmemo.dataset as d\n"
        "for n in range(25): d.build(sys.argv[1], max_length=20 + n % 2 * 20, force=True, workers=1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(config)], env=os.environ | {"LMEMO_STORE": str(tmp_path / "store")}) as writer:
        looks = 0
        while writer.poll() is None:
            # The set that is there, whichever it is: train and eval of one and the same.
            try:
                folder = lmemo._core.dataset_resolve(tmp_path / "set")
                loaded = datasets.load_from_disk(str(folder / "tokenized_dataset"))
            except (FileNotFoundError, lmemo.IoError):
                continue  # Gone between two looks, or not there yet; never another's.
            longest = [max(map(len, loaded[split]["input_ids"])) for split in ("train", "eval")]
            assert longest in ([20, 20], [40, 40])
            looks += 1
    assert writer.returncode == 0 and looks > 0


def test_trl_trains_a_step_on_it(tmp_path: Path) -> None:
    import torch
    import transformers
    import trl

    model = make_model(tmp_path / "model")
    texts = sentences(16)
    write_lines(tmp_path / "train.jsonl", [{"q": f"{a}:", "a": f" {b}"} for a, b in zip(texts[::2], texts[1::2], strict=True)])
    data = dataset.ensure(
        model_name=model, train_file=tmp_path / "train.jsonl", cached_tokens_dir=tmp_path / "set", prompt_field="q", completion_field="a",
        loss="completion", max_length=64, store=lmemo.MemoryStore(),
    )  # fmt: skip
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "set" / "tokenizer")
    torch.manual_seed(0)
    network = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            max_position_embeddings=64,
        )
    )  # fmt: skip
    batches: list[dict[str, Any]] = []

    class Trainer(trl.SFTTrainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: dict[str, Any], *arguments: Any, **options: Any) -> Any:
            batches.append({name: value.clone() for name, value in inputs.items() if hasattr(value, "clone")})
            return super().compute_loss(model, inputs, *arguments, **options)

    arguments = trl.SFTConfig(
        output_dir=str(tmp_path / "run"), max_steps=2, per_device_train_batch_size=4, report_to=[], use_cpu=True, bf16=False, fp16=False,
        save_strategy="no", gradient_checkpointing=False, max_length=64, logging_steps=1,
    )  # fmt: skip
    trainer = Trainer(model=network, args=arguments, train_dataset=data["train"], processing_class=tokenizer)
    result = trainer.train()
    assert 0 < result.training_loss < 20
    eos = tokenizer.eos_token_id
    known = {(tuple(row["input_ids"]), tuple(row["labels"])) for row in data["train"].to_list()}
    for batch in batches:
        for ids, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
            row = next(row for row in known if tuple(ids[: len(row[0])]) == row[0] and set(ids[len(row[0]) :]) <= {tokenizer.pad_token_id})
            assert tuple(labels[: len(row[1])]) == row[1] and set(labels[len(row[1]) :]) <= {-100}
            if row[0][-1] == eos:
                assert row[1][-1] == eos  # The end is learned.
