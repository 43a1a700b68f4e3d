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
_MAX_PADDED_LENGTH = 1 << 26  # As lmemo's own engine.


def as_str(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode()


def canonical(json_text: str) -> str:
    """The same for the same meaning, whatever the order of keys was."""
    import json

    return json.dumps(json.loads(json_text), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def texts_in(texts: Texts) -> Iterator[str]:
    """The texts as HuggingFace wants them. A column of Arrow is read through pyarrow."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("one text was given where many are expected; encode() takes one")
    if hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__"):
        import pyarrow

        column: Any = pyarrow.chunked_array(texts) if hasattr(texts, "__arrow_c_stream__") else pyarrow.array(texts)
        for number, scalar in enumerate(column):
            text = scalar.as_py()
            if text is None:
                raise ValueError(f"text {number} is null")
            yield as_str(text)
        return
    items: Any = texts.tolist() if hasattr(texts, "tolist") else texts
    for text in items:
        if not isinstance(text, (str, bytes)):
            raise TypeError("a text must be str or bytes")
        yield as_str(text)


def rules() -> str:
    """The engine and its version: another one may give other ids."""
    import tokenizers

    return f"huggingface tokenizers {tokenizers.__version__}"


def engine_of_file(path: os.PathLike[str]) -> HuggingFaceEngine | None:
    """HuggingFace's engine for a tokenizer.json; None if it is not installed."""
    import importlib.util

    if importlib.util.find_spec("tokenizers") is None:
        return None
    with open(path, encoding="utf-8") as file:
        return HuggingFaceEngine(file.read())


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


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """HuggingFace raises plain exceptions, or panics, which no `except Exception` catches: one kind comes out here."""
    try:
        yield
    except BaseException as error:
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
                after[1] = None if length == 0 else {
                    "length": length, "pad_to_multiple_of": multiple_of or None, "pad_id": pad_id,
                    "direction": "left" if on_left else "right",
                }  # fmt: skip
            with own_errors():
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
