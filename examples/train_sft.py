"""Fine-tunes a tiny model from a data set that lmemo prepared; on CPU, with two processes, without the network.

    cd examples
    python train_sft.py --prepare train_sft.json                                                    # a tiny model, a few questions
    lmemo dataset run train_sft.json -- torchrun --nproc_per_node=2 train_sft.py train_sft.json     # tokenises once, then trains

Run the second line again: nothing is tokenised any more. Change a line of the questions: that line is. Without `lmemo dataset run`, torchrun
alone does as well: every rank asks for the set, one builds it, the others wait for it.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any


def prepare(config: dict[str, Any]) -> None:
    """A tokenizer and a model of their own, and questions about the texts that come with lmemo."""
    import tokenizers
    import transformers

    texts = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "corpus").glob("*.txt"))]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=2000, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.save_pretrained(config["model_name"])
    shape = transformers.LlamaConfig(
        vocab_size=len(fast), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=512
    )
    transformers.LlamaForCausalLM(shape).save_pretrained(config["model_name"])

    with open(config["train_file"], "w", encoding="utf-8") as file:
        for text in texts:
            for sentence in re.split(r"(?<=\.)\s+", " ".join(text.split()))[:40]:
                words = sentence.split()
                if len(words) < 8:
                    continue
                question = {"role": "user", "content": "Go on: " + " ".join(words[:5])}
                answer = {"role": "assistant", "content": " ".join(words[5:])}
                file.write(json.dumps({"messages": [question, answer]}) + "\n")


def train(config: dict[str, Any]) -> None:
    import transformers
    import trl

    from lmemo import dataset

    # Under `lmemo dataset run` the set is ready; under torchrun alone, one rank builds it now. No barrier either way.
    data = dataset.ensure(config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(config["model_name"])
    arguments = trl.SFTConfig(
        output_dir=config["output_dir"],
        max_steps=config["max_steps"],
        learning_rate=config["learning_rate"],
        per_device_train_batch_size=8,
        eval_strategy="steps",
        eval_steps=config["max_steps"],
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        max_length=None,  # Rows are cut already.
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(config["model_name"])
    trainer = trl.SFTTrainer(
        model=model, args=arguments, train_dataset=data["train"], eval_dataset=data["eval"], processing_class=tokenizer
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()["eval_loss"]
    if trainer.is_world_process_zero():
        print(f"{len(data['train'])} train rows, {trainer.args.world_size} processes: eval loss {before:.3f} → {after:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--prepare", action="store_true", help="make the model and the questions")
    options = parser.parse_args()
    config = json.loads(options.config.read_text())
    prepare(config) if options.prepare else train(config)


if __name__ == "__main__":
    main()
