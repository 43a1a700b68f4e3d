"""Ids and labels are those of a plain transformers + datasets pipeline, and bad lines are counted and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
import transformers

import lmemo
from dataset_fixtures import CHATML, PLAIN_CHATML, chats, make_model, sentences, write_lines
from lmemo import dataset


def reference(model: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(model)


def rows_of(tmp_path: Path, model: Path, lines: list[Any], **parameters: Any) -> list[dict[str, list[int]]]:
    write_lines(tmp_path / "train.jsonl", lines)
    data = dataset.ensure(
        model_name=model, train_file=tmp_path / "train.jsonl", cached_tokens_dir=tmp_path / "set", store=lmemo.MemoryStore(), **parameters
    )
    rows: list[dict[str, list[int]]] = data["train"].to_list()
    return rows


def plain_pipeline(tmp_path: Path, lines: list[Any], function: Any) -> list[dict[str, list[int]]]:
    file = write_lines(tmp_path / "plain.jsonl", lines)
    data = datasets.Dataset.from_json(str(file), cache_dir=str(tmp_path / "cache"))
    rows: list[dict[str, list[int]]] = data.map(function, remove_columns=data.column_names).to_list()
    return rows


def test_texts(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    tokenizer = reference(model)
    lines = [{"text": text} for text in sentences(80)] + [{"text": "Zoë 😀\u0000 <|im_end|> x"}, {"text": "ends<|endoftext|>"}]

    def encode(row: dict[str, Any]) -> dict[str, list[int]]:
        ids = tokenizer(row["text"])["input_ids"]
        ids = (ids if ids[-1] == tokenizer.eos_token_id else ids + [tokenizer.eos_token_id])[:48]
        return {"input_ids": ids, "labels": ids}

    expected = plain_pipeline(tmp_path, lines, encode)
    assert rows_of(tmp_path, model, lines, max_length=48) == expected
    assert (tmp_path / "set" / "tokenizer" / "tokenizer.json").read_bytes() == (model / "tokenizer.json").read_bytes()
    assert reference(tmp_path / "set" / "tokenizer")("ab")["input_ids"] == tokenizer("ab")["input_ids"]


def test_prompts_and_completions(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    tokenizer = reference(model)
    texts = sentences(60)
    lines = [{"q": f"Question: {a}\nAnswer:", "a": f" {b}"} for a, b in zip(texts[::2], texts[1::2], strict=True)]

    def encode(row: dict[str, Any]) -> dict[str, list[int]]:
        prompt = tokenizer(row["q"])["input_ids"]
        ids = tokenizer(row["q"] + row["a"])["input_ids"] + [tokenizer.eos_token_id]
        assert ids[: len(prompt)] == prompt
        return {"input_ids": ids[:200], "labels": ([-100] * len(prompt) + ids[len(prompt) :])[:200]}

    expected = plain_pipeline(tmp_path, lines, encode)
    assert rows_of(tmp_path, model, lines, prompt_field="q", completion_field="a", loss="completion", max_length=200) == expected


@pytest.mark.parametrize("template", ["chatml", "tokenizer", "file"])
def test_chats_with_the_answers_learned(tmp_path: Path, template: str) -> None:
    """Native chatml, the model's own template, and a file with it: one and the same."""
    model = make_model(tmp_path / "model", CHATML)
    (tmp_path / "chat.jinja").write_text(CHATML)
    tokenizer = reference(model)
    lines = chats(40)

    def encode(row: dict[str, Any]) -> dict[str, list[int]]:
        made = tokenizer.apply_chat_template(
            row["messages"], tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        labels = [id if learned else -100 for id, learned in zip(made["input_ids"], made["assistant_masks"], strict=True)]
        return {"input_ids": made["input_ids"], "labels": labels}

    expected = plain_pipeline(tmp_path, lines, encode)
    assert any(label != -100 for label in expected[0]["labels"])
    named = str(tmp_path / "chat.jinja") if template == "file" else template
    assert rows_of(tmp_path, model, lines, messages_field="messages", template=named, loss="assistant", max_length=2000) == expected
    everything = rows_of(tmp_path, model, lines, messages_field="messages", template=named, max_length=2000)
    assert [row["labels"] for row in everything] == [row["input_ids"] for row in expected]


def test_a_template_without_marks_is_compared_with_its_own_prefixes(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model", PLAIN_CHATML)
    tokenizer = reference(model)
    lines = chats(20)
    rows = rows_of(tmp_path, model, lines, messages_field="messages", loss="assistant", max_length=2000)
    assert len(rows) == len(lines)
    for line, row in zip(lines, rows, strict=True):
        learned = tokenizer.decode([label for label in row["labels"] if label != -100])
        assert learned == "".join(m["content"] + "<|im_end|>\n" for m in line["messages"] if m["role"] == "assistant")


def test_a_mask_that_cannot_be_exact_is_refused(tmp_path: Path) -> None:
    """A token across the border, and a template that rewrites earlier turns."""
    model = make_model(tmp_path / "model", "{% for m in messages %}{{ m['role'][0] ~ loop.length ~ m['content'] }}{% endfor %}")
    lines = [{"q": "The answer is: ", "a": "the database"}, {"q": "The answer is:", "a": " the database"}]
    write_lines(tmp_path / "train.jsonl", lines)
    request = {"model_name": model, "train_file": tmp_path / "train.jsonl", "cached_tokens_dir": tmp_path / "set"}
    outcome = dataset.build(request, prompt_field="q", completion_field="a", loss="completion", store=lmemo.MemoryStore())
    assert outcome.counts["train_rows"] == 1 and outcome.counts["bad_lines"] == 1
    assert "train.jsonl:1: inexact mask" in outcome.counts["first_problems"][0]
    write_lines(tmp_path / "train.jsonl", chats(4))
    with pytest.raises(lmemo.Incompatible, match="inexact mask: this template writes a turn otherwise"):
        dataset.build(request, messages_field="messages", loss="assistant", store=lmemo.MemoryStore())


@pytest.mark.parametrize("padding", ["max_length", "longest"])
@pytest.mark.parametrize("pad_token", ["<|pad|>", None])
def test_padding_never_masks_the_end(tmp_path: Path, padding: str, pad_token: str | None) -> None:
    """Also where the end-of-text token is what pads."""
    model = make_model(tmp_path / "model", pad_token=pad_token)
    eos = reference(model).eos_token_id
    pad = reference(model).pad_token_id if pad_token else eos
    lines = [{"text": text} for text in sentences(30, longest=20)]
    bare = rows_of(tmp_path, model, lines, max_length=128)
    length = 128 if padding == "max_length" else max(len(row["input_ids"]) for row in bare)
    rows = rows_of(tmp_path, model, lines, max_length=128, padding=padding)
    for row, short in zip(rows, bare, strict=True):
        ids = short["input_ids"]
        assert ids[-1] == eos == short["labels"][-1]
        assert row["input_ids"] == ids + [pad] * (length - len(ids))
        assert row["labels"] == ids + [-100] * (length - len(ids))
        assert row["attention_mask"] == [1] * len(ids) + [0] * (length - len(ids))
    metadata = json.loads((tmp_path / "set" / "metadata.json").read_text())
    places = length * len(rows)
    assert metadata["padding_share"] == pytest.approx(1 - sum(len(row["input_ids"]) for row in bare) / places)


def test_overflow(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    lines = [{"text": text} for text in sentences(30)]
    whole = [row["input_ids"] for row in rows_of(tmp_path, model, lines, max_length=4096)]

    def ids(overflow: str) -> list[list[int]]:
        return [row["input_ids"] for row in rows_of(tmp_path, model, lines, max_length=32, overflow=overflow)]

    assert ids("truncate") == [row[:32] for row in whole]
    assert ids("drop") == [row for row in whole if len(row) <= 32]
    assert ids("split") == [row[at : at + 32] for row in whole for at in range(0, len(row), 32)]
    with pytest.raises(lmemo.Incompatible, match=r"train\.jsonl:\d+: a row of \d+ ids, longer than max_length 32"):
        ids("error")
    assert len(datasets.load_from_disk(str(tmp_path / "set" / "tokenized_dataset"))["train"]) > 30  # The set before is still there.


def test_bad_lines_are_counted_and_named(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    file = tmp_path / "train.jsonl"
    good = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})
    bad = [
        b'{"messages": [',
        b'{"messages": [{"role": "robot", "content": "x"}]}',
        b'{"messages": []}',
        b'{"messages": "x"}',
        b'{"text": "x"}',
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": [{"role": "user", "content": "only a question"}]}',
    ]
    file.write_bytes(b"\xef\xbb\xbf" + good.encode() + b"\r\n\n" + b"\n".join(bad) + b"\n" + good.encode())
    request: dict[str, Any] = {
        "model_name": model, "train_file": file, "cached_tokens_dir": tmp_path / "set",
        "messages_field": "messages", "template": "chatml", "loss": "assistant",
    }  # fmt: skip
    counts = dataset.build(request, store=lmemo.MemoryStore()).counts
    assert counts["lines"] == 10 and counts["train_rows"] == 2 and counts["bad_lines"] == 8
    assert counts["problems"] == {
        "broken JSON": 1, "wrong role": 1, "empty messages": 1, "wrong type": 1, "missing field": 1, "invalid UTF-8": 1,
        "lone surrogate": 1, "nothing to learn: no assistant": 1,
    }  # fmt: skip
    assert [problem.split(":")[1] for problem in counts["first_problems"]] == [str(line) for line in range(3, 11)]
    with pytest.raises(lmemo.Incompatible, match="8 bad lines, and --strict allows none"):
        dataset.build(request, strict=True, store=lmemo.MemoryStore())
    assert dataset.check(request).is_valid
    with pytest.raises(lmemo.Incompatible, match="the lines have: messages"):
        dataset.build({**request, "messages_field": None, "text_field": "body", "loss": "all", "template": None}, store=lmemo.MemoryStore())


def test_rows_stay_where_they_are_when_others_come(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    texts = sentences(400)

    def sides(lines: list[str], seed: int) -> dict[str, str]:
        write_lines(tmp_path / "train.jsonl", [{"text": text} for text in lines])
        data = dataset.ensure(
            model_name=model, train_file=tmp_path / "train.jsonl", cached_tokens_dir=tmp_path / "set", eval_split=0.25, seed=seed,
            store=lmemo.MemoryStore(),
        )  # fmt: skip
        tokenizer = reference(model)
        return {
            tokenizer.decode(ids, skip_special_tokens=True): side for side in ("train", "eval") for ids in data[side]["input_ids"]
        }

    few, many = sides(texts[100:300], 1), sides(texts, 1)
    assert all(many[text] == side for text, side in few.items())
    assert 60 < sum(side == "eval" for side in many.values()) < 140
    assert sides(texts, 2) != many


def test_changed_lines_cost_themselves(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    lines = [{"text": text} for text in sentences(3000)]
    write_lines(tmp_path / "train.jsonl", lines)
    request = {"model_name": model, "train_file": tmp_path / "train.jsonl", "cached_tokens_dir": tmp_path / "set"}
    with lmemo.Store(tmp_path / "store") as store:
        assert dataset.build(request, store=store).counts["rows_tokenised"] == 3000
    for number in range(0, 3000, 100):
        lines[number]["text"] += " changed"
    write_lines(tmp_path / "train.jsonl", lines)
    with lmemo.Store(tmp_path / "store") as store:
        counts = dataset.build(request, store=store).counts
        assert (counts["rows_tokenised"], counts["rows_from_store"]) == (30, 2970)
        fresh = dataset.build(request | {"cached_tokens_dir": tmp_path / "fresh"}, store=lmemo.MemoryStore())
        assert fresh.counts["rows_from_store"] == 0
        for change in ({"max_length": 16}, {"padding": "max_length"}, {"eval_split": 0.5}):
            assert dataset.build(request | change, store=store).counts["rows_tokenised"] == 0  # Only cut in another way.
        assert dataset.build(request | {"append_eos": False}, store=store).counts["rows_tokenised"] == 3000
        dataset.build(request, store=store)
    name = Path("tokenized_dataset") / "train" / "data-00000-of-00001.arrow"
    assert (tmp_path / "set" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()
