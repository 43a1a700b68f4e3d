"""A small real tokenizer with chat tokens, lines to tokenise, and the commands that build data sets."""

from __future__ import annotations

import functools
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import tokenizers

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "examples" / "corpus"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
# As models have it: what the assistant says, and the mark that ends it, is what a generation is.
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ m['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PLAIN_CHATML = CHATML.replace("{% generation %}", "").replace("{% endgeneration %}", "")


@functools.lru_cache(maxsize=1)
def tokenizer_json() -> str:
    """A byte-level BPE of 2,000 tokens, trained on the project's own texts."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.txt"))[:8]]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str()


def make_model(directory: Path, template: str | None = None, **settings: Any) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "pad_token": "<|pad|>"} | settings
    (directory / "tokenizer_config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    if template is not None:
        (directory / "chat_template.jinja").write_text(template)
    return directory


def sentences(count: int, seed: int = 0, longest: int = 60) -> list[str]:
    dice = random.Random(seed)
    words = " ".join(path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.txt"))[:4]).split()
    starts = [dice.randrange(len(words) - longest) for _ in range(count)]
    return [f"{n} " + " ".join(words[start : start + dice.randrange(1, longest)]) for n, start in enumerate(starts)]


def write_lines(file: Path, rows: list[Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def chats(count: int, seed: int = 0) -> list[dict[str, Any]]:
    texts = sentences(4 * count, seed, longest=20)
    rows = []
    for n in range(count):
        turns = [{"role": "system", "content": "You help."}] if n % 3 == 0 else []
        for turn in range(1 + n % 2):
            turns.append({"role": "user", "content": texts[4 * n + 2 * turn]})
            turns.append({"role": "assistant", "content": texts[4 * n + 2 * turn + 1]})
        rows.append({"messages": turns})
    return rows


def settle(*paths: Path) -> None:
    """Times long past, as files have that nobody just wrote; ctime cannot be set, so wait for it."""
    for path in paths:
        os.utime(path, (1_600_000_000, 1_600_000_000))
    newest = max(path.stat().st_ctime for path in paths)
    time.sleep(max(0.0, newest + 2.05 - time.time()))


def arrow_bytes(directory: Path) -> dict[str, bytes]:
    folder = directory / "tokenized_dataset"
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
