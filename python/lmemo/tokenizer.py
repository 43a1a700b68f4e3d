"""Text to token ids, bit-identical to HuggingFace tokenizers 0.23.3.

    tokenizer = lmemo.Tokenizer.from_file("tokenizer.json")
    tokenizer.encode("Hello, world")                 # numpy uint32
    batch = tokenizer.encode_batch(texts)            # native threads, one array for all
    batch[0], batch.ids, batch.offsets               # views, nothing is copied

A file that lmemo's own engine does not implement in full is run by HuggingFace's, if that is installed; `engine`
tells, and the fingerprint is another. So is one on which the two engines were found to differ (lmemo._verdict).
"""

from __future__ import annotations

import operator

from lmemo._core import ModelSettings, NativeTokenizer
from lmemo._errors import Incompatible, InvalidArgument

TYPE_CHECKING = False  # `import typing` alone takes longer than lmemo.
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal, Protocol

    import numpy
    from numpy.typing import NDArray

    from lmemo._huggingface import HuggingFaceEngine, PaddingTuple, TruncationTuple
    from lmemo._types import Texts

    class _Engine(Protocol):
        """What NativeTokenizer and HuggingFaceEngine have in common."""

        def encode(
            self,
            text: str | bytes,
            add_special_tokens: bool,
            truncation: TruncationTuple | None = None,
            padding: PaddingTuple | None = None,
        ) -> NDArray[numpy.uint32]: ...
        def encode_batch(
            self,
            texts: Texts,
            add_special_tokens: bool,
            threads: int,
            truncation: TruncationTuple | None = None,
            padding: PaddingTuple | None = None,
        ) -> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]: ...
        def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str: ...
        def token_to_id(self, token: str) -> int | None: ...
        def id_to_token(self, id: int) -> str | None: ...
        def save_pieces(self, path: str | os.PathLike[str]) -> None: ...
        def load_pieces(self, path: str | os.PathLike[str]) -> int: ...
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
        index = operator.index(index)
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"text {index} of {len(self)}")
        return self.ids[int(self.offsets[position]) : int(self.offsets[position + 1])]

    def __iter__(self) -> Iterator[NDArray[numpy.uint32]]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"TokenBatch({len(self)} texts, {len(self.ids)} ids)"


class Truncation:
    """How long a sequence may be, special tokens included: as HuggingFace's `enable_truncation`.

    What is cut off is not returned; `stride` and `strategy` are there so that `Truncation(**tokenizer.truncation)` works.
    """

    __slots__ = {
        "direction": "Where it is cut: 'right' or 'left'.",
        "max_length": "With the special tokens.",
        "stride": "Of what is cut off; checked, and not used.",
        "strategy": "'longest_first' or 'only_first', which are the same for single texts.",
    }

    def __init__(
        self,
        max_length: int,
        stride: int = 0,
        strategy: Literal["longest_first", "only_first"] = "longest_first",
        direction: Literal["right", "left"] = "right",
    ) -> None:
        if strategy not in ("longest_first", "only_first"):
            raise InvalidArgument(f"strategy: {strategy!r} has no meaning for single texts")
        self.max_length = _whole(max_length, "max_length")
        self.stride = _whole(stride, "stride")
        self.strategy = strategy
        self.direction = _direction(direction)

    def __repr__(self) -> str:
        return f"Truncation({self.max_length}, stride={self.stride}, direction={self.direction!r})"

    def _tuple(self) -> TruncationTuple:
        return self.max_length, self.stride, self.direction == "left"


class Padding:
    """How long a sequence has to be: as HuggingFace's `enable_padding`. Without a length: the longest of a batch."""

    __slots__ = {
        "direction": "Where it is filled up: 'right' or 'left'.",
        "length": "None is the longest of a batch.",
        "pad_id": "What it is filled up with.",
        "pad_to_multiple_of": "None is any length.",
    }

    def __init__(
        self,
        length: int | None = None,
        pad_id: int = 0,
        pad_to_multiple_of: int | None = None,
        direction: Literal["right", "left"] = "right",
        pad_token: str = "[PAD]",
        pad_type_id: int = 0,
    ) -> None:
        self.length = None if length is None else _whole(length, "length")
        self.pad_id = _whole(pad_id, "pad_id")
        self.pad_to_multiple_of = None if pad_to_multiple_of is None else _whole(pad_to_multiple_of, "pad_to_multiple_of")
        self.direction = _direction(direction)

    def __repr__(self) -> str:
        return f"Padding({self.length}, pad_id={self.pad_id}, pad_to_multiple_of={self.pad_to_multiple_of}, direction={self.direction!r})"

    def _tuple(self) -> PaddingTuple:
        return self.length, self.pad_to_multiple_of or 0, self.pad_id, self.direction == "left"


def _whole(number: int, name: str) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__"):  # numpy's whole numbers have it.
        raise TypeError(f"{name}: expected an int, found {type(number).__name__}")
    whole = operator.index(number)
    if not 0 <= whole < 2**32:
        raise InvalidArgument(f"{name}: found {whole}; expected 0 to 4294967295")
    return whole


def _direction(direction: str) -> str:
    if direction not in ("left", "right"):
        raise InvalidArgument(f"direction: found {direction!r}; expected 'left' or 'right'")
    return direction


def _engine_of(native: Callable[[], NativeTokenizer], json_text: Callable[[], str | bytes]) -> _Engine:
    """Ours, unless it refuses the file or was found to differ from HuggingFace's."""

    from lmemo import _verdict  # Only now: `import lmemo` is to stay light.

    def huggingface() -> HuggingFaceEngine:
        from lmemo._huggingface import HuggingFaceEngine, as_str

        return HuggingFaceEngine(as_str(json_text()))

    try:
        engine = native()
    except (InvalidArgument, Incompatible) as refusal:
        try:
            return huggingface()
        except ImportError:
            raise refusal from None
        except BaseException as error:  # HuggingFace cannot read it either, or panics: the refusal says more.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            raise refusal from None
    return huggingface() if _verdict.differs(engine, huggingface) else engine


def _engine_of_file(path: str | os.PathLike[str]) -> _Engine:
    def json_text() -> bytes:
        from lmemo._huggingface import json_in_file

        return json_in_file(path)

    return _engine_of(lambda: NativeTokenizer.load(path), json_text)


class Tokenizer:
    """Text to token ids. It never changes; any number of threads may share it."""

    __slots__ = ("_chat", "_directory", "_engine", "_fingerprint", "_settings")

    def __init__(self, engine: _Engine, settings: ModelSettings | None = None, directory: str | None = None) -> None:
        if not hasattr(engine, "fingerprint"):
            raise TypeError(f"a Tokenizer is not made of {type(engine).__name__}; use Tokenizer.from_file, from_pretrained_dir, from_str, from_hf or from_tiktoken")
        self._engine = engine
        self._settings = settings
        self._directory = directory
        self._fingerprint = engine.fingerprint if settings is None else settings.identity_with(engine.fingerprint)
        self._chat: Any = None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Loads a tokenizer.json. Raises lmemo.Incompatible, with the place in the file, if it is none."""
        return cls(_engine_of_file(path))

    @classmethod
    def from_str(cls, json: str | bytes) -> Tokenizer:
        """The same from the text of a tokenizer.json."""
        return cls(_engine_of(lambda: NativeTokenizer.from_json(json), lambda: json))

    @classmethod
    def from_hf(cls, tokenizer: Any) -> Tokenizer:
        """From a `tokenizers.Tokenizer`, or a `transformers.PreTrainedTokenizerFast`, as it is now."""
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not hasattr(backend, "to_str"):
            raise TypeError(f"a {type(tokenizer).__name__} has no tokenizer.json; expected a tokenizers.Tokenizer or a fast tokenizer of transformers")
        from lmemo import _huggingface

        try:
            json_text: str = backend.to_str()
        except Exception as error:  # Parts that were written in Python.
            raise Incompatible(f"the tokenizer cannot be saved: {error}") from error
        if getattr(backend, "encode_special_tokens", False):
            made = cls(_huggingface.HuggingFaceEngine(json_text, encodes_special_tokens=True))
        else:
            made = cls.from_str(json_text)
        _huggingface.expect_saved_whole(backend, made)
        return made

    @classmethod
    def from_pretrained_dir(cls, directory: str | os.PathLike[str]) -> Tokenizer:
        """From a model's directory: its tokenizer.json, and the special tokens and chat templates beside it.

        These belong to the fingerprint. Ids are those of tokenizer.json; what transformers' own classes change about
        them when they load is seen by `from_hf` alone.
        """
        import os

        folder = os.fspath(directory)
        settings = ModelSettings.read(folder)
        return cls(_engine_of_file(os.path.join(folder, "tokenizer.json")), settings, folder)

    @classmethod
    def from_tiktoken(
        cls, path: str | os.PathLike[str], pattern: str, special_tokens: Mapping[str, int] | None = None
    ) -> Tokenizer:
        """From a tiktoken rank file. `pattern`: gpt2, r50k, p50k, cl100k or o200k, or a regex.

        The ids of tiktoken's `encode(text, allowed_special="all")`.
        """
        if not isinstance(pattern, str):
            raise TypeError(f"pattern: expected a str, found {type(pattern).__name__}")
        special = {token: _whole(id, f"special_tokens[{token!r}]") for token, id in dict(special_tokens or {}).items()}
        return cls(NativeTokenizer.load_tiktoken(path, pattern, special))

    def encode(
        self,
        text: str | bytes,
        add_special_tokens: bool = True,
        *,
        truncation: int | Truncation | Literal[False] | None = None,
        padding: bool | int | Padding | None = None,
    ) -> NDArray[numpy.uint32]:
        """The ids of a text; bytes are read as UTF-8.

        `truncation` and `padding`: None is what the file says, False none, a number the length. padding=True is to the
        longest of a batch. The id that pads is the pad_token's of a model's directory, else give a Padding.
        """
        return self._engine.encode(text, add_special_tokens, _truncation(truncation), self._padding(padding))

    def encode_batch(
        self,
        texts: Texts,
        add_special_tokens: bool = True,
        threads: int | None = None,
        *,
        truncation: int | Truncation | Literal[False] | None = None,
        padding: bool | int | Padding | None = None,
    ) -> TokenBatch:
        """The ids of many texts, on so many native threads; None is one per core.

        Texts are an iterable of str or bytes, a numpy array of them, or anything that offers a column of strings through
        the Arrow C data interface (pyarrow, polars, pandas, …), which is read where it lies.
        """
        count = 0 if threads is None else _whole(threads, "threads")
        return TokenBatch(
            *self._engine.encode_batch(texts, add_special_tokens, count, _truncation(truncation), self._padding(padding))
        )

    def save_pieces(self, path: str | os.PathLike[str]) -> None:
        """Writes what was met so far, with its ids, to a file: a process that loads it starts as fast as this one is now."""
        self._engine.save_pieces(path)

    def load_pieces(self, path: str | os.PathLike[str]) -> int:
        """Takes over what another process saved, and tells how many pieces that is; 0 if there is no such file.

        A file of another tokenizer raises lmemo.Incompatible, a damaged one lmemo.Corruption; neither changes anything.
        """
        return self._engine.load_pieces(path)

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
        return self._fingerprint

    @property
    def engine(self) -> str:
        """Who does the work: lmemo's engines, or "huggingface"."""
        return self._engine.engine

    @property
    def special_tokens(self) -> dict[str, str]:
        """By their role, {'eos_token': '</s>'}, as a model's directory names them; else empty."""
        return {} if self._settings is None else self._settings.special_tokens

    @property
    def chat_template(self) -> str | None:
        """The Jinja template of a model's directory, or None."""
        return None if self._settings is None else self._settings.chat_templates.get("default")

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, Any]], *, tokenize: bool = True, **options: Any
    ) -> NDArray[numpy.uint32] | str:
        """The ids (or the text) of a chat: rendered by transformers, in its Jinja sandbox, encoded here.

        Options are those of transformers' `apply_chat_template`, for example add_generation_prompt=True.
        """
        if self._directory is None or self._settings is None or not self._settings.chat_templates:
            raise InvalidArgument("no chat template: load the tokenizer with from_pretrained_dir from a directory that has one")
        if self._chat is None:
            try:
                import transformers
            except ImportError:
                raise ImportError("apply_chat_template needs transformers: pip install transformers jinja2") from None
            self._chat = transformers.PreTrainedTokenizerFast.from_pretrained(self._directory, local_files_only=True)
        text: str = self._chat.apply_chat_template(messages, tokenize=False, **options)
        return self.encode(text, add_special_tokens=False) if tokenize else text

    def _padding(self, padding: bool | int | Padding | None) -> PaddingTuple | None:
        if padding is None:
            return None
        if isinstance(padding, Padding):
            return padding._tuple()
        if padding is False:
            return 0, 0, 0, False
        pad_token = self.special_tokens.get("pad_token")
        pad_id = None if pad_token is None else self.token_to_id(pad_token)
        if pad_id is None:
            raise InvalidArgument("padding: the id that pads is not known; give lmemo.Padding(length, pad_id=...)")
        return Padding(None if padding is True else padding, pad_id)._tuple()

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size} tokens, {self.engine}, {self.fingerprint[:12]})"


def _truncation(truncation: int | Truncation | Literal[False] | None) -> TruncationTuple | None:
    if truncation is None:
        return None
    if truncation is False:
        return None, 0, False
    return (truncation if isinstance(truncation, Truncation) else Truncation(truncation))._tuple()
