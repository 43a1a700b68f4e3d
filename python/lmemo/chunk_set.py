"""A directory of packed training rows, opened for reading.

    chunks = lmemo.ChunkSet("corpus.chunks")
    len(chunks), chunks.info()["total_tokens"]
    tokens, lengths = chunks[0]              # A row, and the lengths of the documents in it.
    chunks.batch(range(32)).input_ids        # numpy int64, one row each, padded at the end.

A set with gaps, or one that another tokenizer made, does not open unless it is told so; the error says what to run. For training,
lmemo.torch.ChunkDataset reads it in a shuffled order that can be resumed.
"""

from __future__ import annotations

from lmemo._core import NativeChunkSet, RowReader
from lmemo._errors import InvalidArgument

TYPE_CHECKING = False  # `import typing` alone takes longer than lmemo.
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from typing import Any

    import numpy
    from numpy.typing import NDArray

    from lmemo.tokenizer import Tokenizer

__all__ = ["ChunkRow", "ChunkSet", "RowBatch"]

_KEPT_BYTES = 64 << 20  # Of decoded blocks, for those who look at rows here and there.


class ChunkRow(tuple["NDArray[numpy.uint32]", "list[int]"]):
    """(tokens, lengths): the tokens of a row without padding, and how many of them each document or piece of one has."""

    __slots__ = ()

    @property
    def tokens(self) -> NDArray[numpy.uint32]:
        """The tokens, without padding."""
        return self[0]

    @property
    def lengths(self) -> list[int]:
        """The lengths of the documents, or pieces of documents, in the row."""
        return self[1]


class RowBatch:
    """Some rows as one array. numpy is imported when `input_ids` is asked for; memoryview(batch.buffer) needs none."""

    __slots__ = {"_lengths": "", "_row_pieces": "", "buffer": "The ids of all rows: int64, rows × sequence_length."}

    def __init__(self, buffer: memoryview, lengths: memoryview, row_pieces: memoryview) -> None:
        self.buffer = buffer
        self._lengths = lengths
        self._row_pieces = row_pieces

    def __len__(self) -> int:
        return len(self._row_pieces) - 1

    @property
    def input_ids(self) -> NDArray[numpy.int64]:
        """The ids, one row each, padded at the end. Not a copy."""
        import numpy

        return numpy.asarray(self.buffer)

    @property
    def seq_lengths(self) -> list[list[int]]:
        """For each row the lengths of its documents; their sum is the number of tokens that are not padding."""
        return lengths_by_row(self._lengths, self._row_pieces)


def lengths_by_row(lengths: memoryview, row_pieces: memoryview) -> list[list[int]]:
    """The lengths of all rows, row by row."""
    flat: list[int] = lengths.tolist()
    ends: list[int] = row_pieces.tolist()
    return [flat[start:end] for start, end in zip(ends, ends[1:])]


class ChunkSet:
    """All rows of a directory of chunks, as they were when it was opened.

    tokenizer: refuse a set that was made with another one: an lmemo.Tokenizer, its identity, or where it lies, named as for the build: a model's
        directory is another one than the tokenizer.json in it, whose settings it has.
    allow_gaps: open it although chunks are missing or damaged; their rows are simply not there.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, tokenizer: Tokenizer | str | os.PathLike[str] | None = None, allow_gaps: bool = False
    ) -> None:
        import os

        identity = None if tokenizer is None else _identity_of(tokenizer)
        self._arguments = (os.fspath(directory), identity, allow_gaps)
        self._native = NativeChunkSet.open(directory, allow_gaps, identity)
        self._reader: tuple[int, RowReader] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, self._arguments

    def __repr__(self) -> str:
        return f"lmemo.ChunkSet({self.directory!r}, rows={len(self)}, sequence_length={self.sequence_length})"

    def __len__(self) -> int:
        return self._native.rows

    def __getitem__(self, index: int) -> ChunkRow:
        import numpy

        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"row {index} of a set that has {len(self)}")
        buffer, lengths, _ = self._rows().read_new([position], 0)
        pieces: list[int] = lengths.tolist()
        return ChunkRow((numpy.asarray(buffer)[0, : sum(pieces)].astype(numpy.uint32), pieces))

    def __iter__(self) -> Iterator[ChunkRow]:
        return (self[index] for index in range(len(self)))

    def batch(self, indices: Iterable[int], *, pad_id: int = 0) -> RowBatch:
        """These rows, in this order, as one array."""
        count = len(self)
        rows = [int(index) for index in indices]
        rows = [row + count if row < 0 else row for row in rows]
        for row in rows:
            if not 0 <= row < count:
                raise IndexError(f"row {row} of a set that has {count}")
        return RowBatch(*self._rows().read_new(rows, pad_id))

    def info(self) -> dict[str, Any]:
        """What the set holds, and how it was made."""
        native = self._native
        capacity = native.rows * native.sequence_length
        return {
            "directory": self.directory,
            "total_chunks": native.planned_chunks,
            "chunks_found": len(native.chunk_rows),
            "complete": self.is_complete,
            "missing": self.gaps(),
            "total_sequences": native.rows,
            "total_tokens": native.tokens,
            "max_length": native.sequence_length,
            "utilization": native.tokens / capacity if capacity else 0.0,
            "identity": native.identity,
            **native.parameters,
        }

    def gaps(self) -> list[int]:
        """The numbers of the chunks that are missing or cannot be read; `lmemo chunks fill` builds them."""
        return self._native.gaps

    @property
    def is_complete(self) -> bool:
        """No chunk is missing."""
        return not self._native.gaps

    @property
    def directory(self) -> str:
        """Where it lies."""
        return self._arguments[0]

    @property
    def sequence_length(self) -> int:
        """Tokens a row can hold."""
        return self._native.sequence_length

    @property
    def identity(self) -> str:
        """A digest of how the set was made and of what every chunk holds. A set that grew has another one."""
        return self._native.identity

    @property
    def tokenizer(self) -> str:
        """The identity of the tokenizer that made the set."""
        return str(self._native.parameters["tokenizer"])

    @property
    def chunk_rows(self) -> list[int]:
        """The rows of each chunk that is there."""
        return self._native.chunk_rows

    def digest_of_first(self, chunks: int) -> str:
        """The identity that the set had when it had so many chunks; so a set that grew is known again."""
        if not 0 <= chunks <= len(self.chunk_rows):
            raise InvalidArgument(f"the first {chunks} chunks of a set that has {len(self.chunk_rows)}")
        return self._native.identity_of_first(chunks)

    def _rows(self) -> RowReader:
        import os

        # After a fork the memory of the parent's reader may be in the middle of a change.
        if self._reader is None or self._reader[0] != os.getpid():
            if self._reader is not None:
                self._reader[1].abandon()
            self._reader = (os.getpid(), RowReader(self._native, _KEPT_BYTES, 0))
        return self._reader[1]


def _identity_of(tokenizer: Tokenizer | str | os.PathLike[str]) -> str:
    import os

    if isinstance(tokenizer, str) and len(tokenizer) == 64 and set(tokenizer) <= set("0123456789abcdef"):
        return tokenizer
    if not isinstance(tokenizer, (str, os.PathLike)):
        return tokenizer.fingerprint
    from lmemo.tokenizer import Tokenizer

    if not os.path.exists(tokenizer):
        raise InvalidArgument(
            f"tokenizer is {os.fspath(tokenizer)!r}, which is no file or directory here; expected one, an lmemo.Tokenizer, or its identity of 64 "
            "hexadecimal digits"
        )
    made = Tokenizer.from_pretrained_dir(tokenizer) if os.path.isdir(tokenizer) else Tokenizer.from_file(tokenizer)
    return made.fingerprint


def _reopened(directory: str, tokenizer: str | None, allow_gaps: bool) -> ChunkSet:
    return ChunkSet(directory, tokenizer=tokenizer, allow_gaps=allow_gaps)
