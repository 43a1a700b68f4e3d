"""HuggingFace's tokenizer, for the commands of `lmemo` that compare with it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def huggingface_oracle(path: Path) -> tuple[str, list[str], Callable[[list[str]], list[list[int]]]]:
    """Its name, texts that tokenizers get wrong, and a function from texts to ids."""
    try:
        import tokenizers
    except ImportError:
        raise ImportError("HuggingFace's tokenizers are not installed: pip install tokenizers") from None
    from lmemo._huggingface import own_errors
    from lmemo._verdict import TRAPS

    tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))

    def encode(texts: list[str]) -> list[list[int]]:
        with own_errors(texts):
            return [encoding.ids for encoding in tokenizer.encode_batch(texts)]

    return f"tokenizers {tokenizers.__version__}", TRAPS, encode
