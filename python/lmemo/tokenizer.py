"""Text to token ids, bit-identical to HuggingFace tokenizers 0.23.3.

    tokenizer = lmemo.Tokenizer.from_file("tokenizer.json")
    tokenizer.encode("Hello, world")                 # numpy uint32
    batch = tokenizer.encode_batch(texts)            # native threads, one array for all
    batch[0], batch.ids, batch.offsets               # views, nothing is copied

A file that lmemo's own engine does not implement in full is run by HuggingFace's, if that is installed; `engine`
tells, and the fingerprint is another.
"""

from __future__ import annotations

from lmemo._core import NativeTokenizer
from lmemo._errors import Incompatible, InvalidArgument

TYPE_CHECKING = False  # `import typing` alone takes longer than lmemo.
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from typing import Any, Protocol

    import numpy
    from numpy.typing import NDArray

    class _Engine(Protocol):
        """What NativeTokenizer and the HuggingFace engine have in common."""

        def encode(self, text: str | bytes, add_special_tokens: bool) -> NDArray[numpy.uint32]: ...
        def encode_batch(
            self, texts: Iterable[str | bytes], add_special_tokens: bool, threads: int
        ) -> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]: ...
        def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str: ...
        def token_to_id(self, token: str) -> int | None: ...
        def id_to_token(self, id: int) -> str | None: ...
        @property
        def vocab_size(self) -> int: ...
        @property
        def fingerprint(self) -> str: ...
        @property
        def engine(self) -> str: ...


class TokenBatch:
    """The ids of many texts in one array: text i has `ids[offsets[i]:offsets[i + 1]]`, which is `batch[i]`."""

    __slots__ = {"ids": "The ids of all texts, one after another.", "offsets": "Where each text begins; one more at the end."}

    def __init__(self, ids: NDArray[numpy.uint32], offsets: NDArray[numpy.uint64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[numpy.uint32]:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"text {index} of {len(self)}")
        return self.ids[int(self.offsets[position]) : int(self.offsets[position + 1])]

    def __iter__(self) -> Iterator[NDArray[numpy.uint32]]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"TokenBatch({len(self)} texts, {len(self.ids)} ids)"


class _HuggingFaceEngine:
    """HuggingFace's tokenizer behind the same interface, for files that ours refuses."""

    engine = "huggingface"

    def __init__(self, json: str) -> None:
        import hashlib

        import tokenizers

        self._tokenizer = tokenizers.Tokenizer.from_str(json)
        canonical = f"huggingface tokenizers {tokenizers.__version__}\n{json}"
        self.fingerprint = hashlib.sha256(canonical.encode()).hexdigest()

    def encode(self, text: str | bytes, add_special_tokens: bool) -> NDArray[numpy.uint32]:
        import numpy

        ids = self._tokenizer.encode(_text_of(text), add_special_tokens=add_special_tokens).ids
        return numpy.array(ids, dtype=numpy.uint32)

    def encode_batch(
        self, texts: Iterable[str | bytes], add_special_tokens: bool, threads: int
    ) -> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]:
        import numpy

        all_texts = [_text_of(text) for text in texts]
        encoded = self._tokenizer.encode_batch(all_texts, add_special_tokens=add_special_tokens)
        offsets = numpy.zeros(len(encoded) + 1, dtype=numpy.uint64)
        numpy.cumsum([len(encoding.ids) for encoding in encoded], out=offsets[1:])
        ids = numpy.empty(int(offsets[-1]), dtype=numpy.uint32)
        for index, encoding in enumerate(encoded):
            ids[int(offsets[index]) : int(offsets[index + 1])] = encoding.ids
        return ids, offsets

    def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str:
        text: str = self._tokenizer.decode([int(id) for id in ids], skip_special_tokens=skip_special_tokens)
        return text

    def token_to_id(self, token: str) -> int | None:
        id: int | None = self._tokenizer.token_to_id(token)
        return id

    def id_to_token(self, id: int) -> str | None:
        token: str | None = self._tokenizer.id_to_token(id)
        return token

    @property
    def vocab_size(self) -> int:
        size: int = self._tokenizer.get_vocab_size()
        return size


def _text_of(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode()


def _engine_of(json: str | bytes) -> _Engine:
    try:
        return NativeTokenizer.from_json(json)
    except (InvalidArgument, Incompatible) as refusal:
        try:
            return _HuggingFaceEngine(_text_of(json))
        except ImportError:
            raise refusal from None
        except Exception:  # HuggingFace cannot read it either: the refusal says more.
            raise refusal from None


class Tokenizer:
    """A tokenizer.json, ready to use. It never changes; any number of threads may share it."""

    __slots__ = ("_engine",)

    def __init__(self, engine: _Engine) -> None:
        self._engine = engine

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Loads a tokenizer.json. Raises lmemo.Incompatible, with the place in the file, if it is none."""
        with open(path, "rb") as file:
            return cls(_engine_of(file.read()))

    @classmethod
    def from_str(cls, json: str | bytes) -> Tokenizer:
        """The same from the text of a tokenizer.json."""
        return cls(_engine_of(json))

    @classmethod
    def from_hf(cls, tokenizer: Any) -> Tokenizer:
        """From a `tokenizers.Tokenizer`, or a `transformers.PreTrainedTokenizerFast`, as it is now."""
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        return cls(_engine_of(backend.to_str()))

    def encode(self, text: str | bytes, add_special_tokens: bool = True) -> NDArray[numpy.uint32]:
        """The ids of a text; bytes are read as UTF-8."""
        return self._engine.encode(text, add_special_tokens)

    def encode_batch(
        self, texts: Iterable[str | bytes], add_special_tokens: bool = True, threads: int | None = None
    ) -> TokenBatch:
        """The ids of many texts, on so many native threads; None is one per core."""
        return TokenBatch(*self._engine.encode_batch(texts, add_special_tokens, threads or 0))

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of ids. Ids that no token has are left out."""
        return self._engine.decode(ids, skip_special_tokens)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        return self._engine.token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        """The token with that id, or None."""
        return self._engine.id_to_token(id)

    @property
    def vocab_size(self) -> int:
        """Tokens of the model and added tokens together."""
        return self._engine.vocab_size

    @property
    def fingerprint(self) -> str:
        """64 hex digits; another one whenever any text could get other ids. The order of keys does not count."""
        return self._engine.fingerprint

    @property
    def engine(self) -> str:
        """Who does the work: "reference" (lmemo's plain engine) or "huggingface"."""
        return self._engine.engine

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size} tokens, {self.engine}, {self.fingerprint[:12]})"
