"""HuggingFace's own engine behind the interface of lmemo's, for files that ours refuses or reads otherwise."""

from __future__ import annotations

import contextlib
import threading

from lmemo._errors import Incompatible, InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from typing import Any

    import numpy
    from numpy.typing import NDArray

    from lmemo._types import Texts

    TruncationTuple = tuple[int | None, int, bool]
    PaddingTuple = tuple[int | None, int, int, bool]

_TEXTS_AT_ONCE = 4096  # HuggingFace keeps strings and offsets of all its results in memory.
# As lmemo's own engine: what is beyond must not even get to HuggingFace's.
_MAX_JSON_BYTES = 1 << 30
_MAX_PADDED_LENGTH = 1 << 26
_MAX_ID = (1 << 32) - 1


def as_str(text: Any) -> str:
    """A text as HuggingFace wants it, with the errors of lmemo's own engine."""
    if isinstance(text, str):
        return text
    if not isinstance(text, bytes):
        raise TypeError("a text must be str or bytes")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"text is not UTF-8 at byte {error.start}") from None


def canonical(json_text: str) -> str:
    """The same for the same meaning, whatever the order of keys was."""
    import json

    return json.dumps(json.loads(json_text), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def texts_in(texts: Any) -> Iterator[str]:
    """The texts as HuggingFace wants them. A column of Arrow is read through pyarrow."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("one text was given where many are expected; encode() takes one")
    if hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__"):
        for number, scalar in enumerate(column_in(texts)):
            text = scalar.as_py()
            if text is None:
                raise ValueError(f"text {number} is null")
            yield as_str(text)
        return
    if getattr(texts, "ndim", 1) != 1:
        raise TypeError("an array of texts must have one dimension")
    for text in texts.tolist() if hasattr(texts, "tolist") else texts:
        yield as_str(text)


def column_in(texts: Any) -> Any:
    """The column of strings; a table of one column counts as that column."""
    import pyarrow

    column: Any = pyarrow.chunked_array(texts) if hasattr(texts, "__arrow_c_stream__") else pyarrow.chunked_array([pyarrow.array(texts)])
    if pyarrow.types.is_struct(column.type):
        if column.type.num_fields != 1:
            names = ", ".join(field.name for field in column.type)
            raise TypeError(f"a table of {column.type.num_fields} columns ({names}); give one of them")
        column = pyarrow.chunked_array([chunk.field(0) for chunk in column.chunks], column.type[0].type)
    kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
    if kind not in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(), pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()):
        raise TypeError(f"an Arrow column of type '{kind}'; expected strings or binary")
    return column


def rules() -> str:
    """The engine and its version: another one may give other ids."""
    import tokenizers

    return f"huggingface tokenizers {tokenizers.__version__}"


def json_in_file(path: str | os.PathLike[str]) -> bytes:
    """A tokenizer.json, if it is not too large to be one."""
    import os

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_JSON_BYTES:
            raise Incompatible(f"{path}: {size} bytes; expected at most {_MAX_JSON_BYTES}")
        return file.read()


def engine_of_file(path: os.PathLike[str]) -> HuggingFaceEngine | None:
    """HuggingFace's engine for a tokenizer.json; None if it is not installed."""
    import importlib.util

    if importlib.util.find_spec("tokenizers") is None:
        return None
    return HuggingFaceEngine(as_str(json_in_file(path)))


def fetch_tokenizer(name: str) -> str:
    """Where the files of a model's tokenizer are: in the cache of HuggingFace's hub, downloaded if they are not there."""
    try:
        import huggingface_hub
    except ImportError:
        raise ImportError("huggingface_hub is not installed: pip install huggingface_hub") from None
    patterns = ["tokenizer*", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "additional_chat_templates/*"]
    return str(huggingface_hub.snapshot_download(name, allow_patterns=patterns))


def refuse_what_kills(content: Any) -> None:
    """HuggingFace ends the whole process, or eats its memory, on some files: these must not get there.

    A merge whose right side is cut by continuing_subword_prefix in the middle of a character makes it abort while it
    loads; padding is allocated as the file says.
    """
    if not isinstance(content, dict):
        return
    padding = content.get("padding")
    if isinstance(padding, dict):
        strategy = padding.get("strategy")
        for length in (strategy.get("Fixed") if isinstance(strategy, dict) else None, padding.get("pad_to_multiple_of")):
            if isinstance(length, int) and length > _MAX_PADDED_LENGTH:
                raise Incompatible(f"tokenizer.json, padding: expected at most {_MAX_PADDED_LENGTH}, found {length}")
    model = content.get("model")
    prefix = model.get("continuing_subword_prefix") if isinstance(model, dict) else None
    merges = model.get("merges") if isinstance(model, dict) else None
    if not prefix or not isinstance(prefix, str) or not isinstance(merges, list):
        return
    cut = len(prefix.encode())
    for number, merge in enumerate(merges):
        right = merge.split(" ")[-1] if isinstance(merge, str) else merge[-1] if isinstance(merge, list) and merge else ""
        rest = right.encode()[cut:] if isinstance(right, str) else b""
        if rest and rest[0] & 0xC0 == 0x80:
            raise Incompatible(f"tokenizer.json, model.merges[{number}]: {right!r} is cut in the middle of a character")


def expect_id(id: Any) -> int:
    import operator

    number = operator.index(id)
    if not 0 <= number <= _MAX_ID:
        raise InvalidArgument(f"id {number}: expected 0 to {_MAX_ID}")
    return number


@contextlib.contextmanager
def own_errors(texts: Iterable[str] = ()) -> Iterator[None]:
    """HuggingFace raises plain exceptions, or panics, which no `except Exception` catches: one kind comes out here."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, TypeError):
            for text in texts:
                text.encode()  # UTF-16 surrogates: this names them.
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        raise InvalidArgument(f"HuggingFace tokenizers: {error}") from error


def expect_saved_whole(tokenizer: Any, saved: Any) -> None:
    """Some of a `tokenizers.Tokenizer` is in no tokenizer.json: what would give other ids than the object is refused."""
    if getattr(tokenizer.model, "alpha", None):
        raise Incompatible("Unigram.alpha: samples other ids every time; expected None")
    for id, token in tokenizer.get_added_tokens_decoder().items():
        if saved.token_to_id(token.content) != id:
            raise Incompatible(
                f"the added token {token.content!r} has the id {id}, and {saved.token_to_id(token.content)} once the tokenizer is "
                "saved and loaded again; load it from the saved file"
            )


class HuggingFaceEngine:
    """A `tokenizers.Tokenizer`. Lengths are settings of that object, so calls that change them wait for each other.

    `encodes_special_tokens`: special tokens in a text are text, a setting that no tokenizer.json has.
    """

    engine = "huggingface"

    def __init__(self, json_text: str, encodes_special_tokens: bool = False) -> None:
        import hashlib
        import json

        import tokenizers

        refuse_what_kills(json.loads(json_text))
        with own_errors():
            self._tokenizer = tokenizers.Tokenizer.from_str(json_text)
        self._tokenizer.encode_special_tokens = encodes_special_tokens
        self._lock = threading.Lock()
        what_runs = rules() + (", encode_special_tokens" if encodes_special_tokens else "")
        self.fingerprint = hashlib.sha256((f"{what_runs}\n" + canonical(json_text)).encode()).hexdigest()

    def _set_lengths(self, truncation: dict[str, Any] | None, padding: dict[str, Any] | None) -> None:
        if truncation is None:
            self._tokenizer.no_truncation()
        else:
            self._tokenizer.enable_truncation(**truncation)
        if padding is None:
            self._tokenizer.no_padding()
        else:
            self._tokenizer.enable_padding(**padding)

    def _encoded(
        self, texts: list[str], special: bool, truncation: TruncationTuple | None, padding: PaddingTuple | None
    ) -> list[Any]:
        with self._lock:
            before = self._tokenizer.truncation, self._tokenizer.padding
            after = list(before)
            if truncation is not None:
                max_length, stride, from_left = truncation
                direction = "left" if from_left else "right"
                after[0] = None if max_length is None else {"max_length": max_length, "stride": stride, "direction": direction}
            if padding is not None:
                length, multiple_of, pad_id, on_left = padding
                if max(length or 0, multiple_of) > _MAX_PADDED_LENGTH:
                    raise InvalidArgument(f"padding: expected at most {_MAX_PADDED_LENGTH}, found {max(length or 0, multiple_of)}")
                after[1] = None if length == 0 else {
                    "length": length, "pad_to_multiple_of": multiple_of or None, "pad_id": pad_id,
                    "direction": "left" if on_left else "right",
                }  # fmt: skip
            with own_errors(texts):
                if tuple(after) == before:
                    return list(self._tokenizer.encode_batch(texts, add_special_tokens=special))
                try:
                    self._set_lengths(*after)
                    return list(self._tokenizer.encode_batch(texts, add_special_tokens=special))
                finally:
                    self._set_lengths(*before)

    def encode(
        self,
        text: str | bytes,
        add_special_tokens: bool,
        truncation: TruncationTuple | None = None,
        padding: PaddingTuple | None = None,
    ) -> NDArray[numpy.uint32]:
        import numpy

        return numpy.array(self._encoded([as_str(text)], add_special_tokens, truncation, padding)[0].ids, dtype=numpy.uint32)

    def encode_batch(
        self,
        texts: Texts,
        add_special_tokens: bool,
        threads: int,
        truncation: TruncationTuple | None = None,
        padding: PaddingTuple | None = None,
    ) -> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]:
        import numpy

        all_texts = list(texts_in(texts))
        # To the longest of a batch means of this one: it has to be seen as a whole.
        pads = padding is not None or self._tokenizer.padding is not None
        at_once = max(1, len(all_texts)) if pads else _TEXTS_AT_ONCE
        pieces: list[NDArray[numpy.uint32]] = []
        lengths = [0]
        for start in range(0, len(all_texts), at_once):
            for encoding in self._encoded(all_texts[start : start + at_once], add_special_tokens, truncation, padding):
                pieces.append(numpy.array(encoding.ids, dtype=numpy.uint32))
                lengths.append(len(pieces[-1]))
        ids = numpy.concatenate(pieces) if pieces else numpy.empty(0, dtype=numpy.uint32)
        return ids, numpy.cumsum(lengths, dtype=numpy.uint64)

    def save_pieces(self, path: str | os.PathLike[str]) -> None:
        """HuggingFace's cache cannot be saved."""

    def load_pieces(self, path: str | os.PathLike[str]) -> int:
        return 0

    def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str:
        with own_errors():
            text: str = self._tokenizer.decode([expect_id(id) for id in ids], skip_special_tokens=skip_special_tokens)
        return text

    def token_to_id(self, token: str) -> int | None:
        id: int | None = self._tokenizer.token_to_id(as_str(token))
        return id

    def id_to_token(self, id: int) -> str | None:
        token: str | None = self._tokenizer.id_to_token(expect_id(id))
        return token

    @property
    def vocab_size(self) -> int:
        size: int = self._tokenizer.get_vocab_size()
        return size
