"""Trains examples/tokenizer, the small byte-level BPE that `lmemo demo`, the tutorial and the examples use.

    .venv/bin/python tools/make_example_tokenizer.py

Trained on examples/corpus alone, so it belongs to the project as the texts do. The result is in the repository: run
this only to make another one.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parents[1]
END_OF_TEXT = "<|endoftext|>"
VOCABULARY_SIZE = 8192


def main() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train(sorted(str(path) for path in (ROOT / "examples" / "corpus").glob("*.txt")), trainer)
    directory = ROOT / "examples" / "tokenizer"
    directory.mkdir(exist_ok=True)
    (directory / "tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "unk_token": END_OF_TEXT,
        "model_max_length": 1024,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


main()
