"""Packed rows for PyTorch: shuffled, shared among ranks and workers, resumable in the middle of an epoch.

    from lmemo.torch import ChunkDataset, ChunkLoader

    dataset = ChunkDataset("corpus.chunks", seed=7)
    loader = ChunkLoader(dataset, batch_size=32)
    for batch in loader:                       # input_ids, labels, position_ids: [32, sequence_length]; seq_lengths
        ...
    state = loader.state_dict()                # A few numbers. Later, with any number of ranks and workers:
    loader.load_state_dict(state)

An epoch is one order of all rows, computed and not stored (lmemo/row_order.h). Ranks share it like cards: what is left belongs to rank 0, 1, …,
world_size - 1, 0, 1, … So what all ranks have read is a prefix of the order, and the state is its length.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils.data import Dataset, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from lmemo._core import RowOrder, RowReader
from lmemo._errors import Incompatible, InvalidArgument
from lmemo._row_places import RowPlaces
from lmemo._torch_collators import BlockDiagonalCollator, PaddingFreeCollator
from lmemo._torch_context import worker_context
from lmemo._torch_late import LateBatch, LateSamples, RowAddress, is_asked_by_fetcher, name_of
from lmemo._torch_loader import ChunkLoader, ChunkStream
from lmemo._torch_rows import COLUMNS, RowSamples, SeqLengths
from lmemo.chunk_set import ChunkSet, lengths_by_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "BlockDiagonalCollator", "ChunkDataset", "ChunkLoader", "ChunkStream", "PaddingFreeCollator", "RowSamples", "SeqLengths", "TrainingRows",
    "worker_context",
]  # fmt: skip

# Threads are told of every fifth row to come: a block has many rows, and one that is missed is decoded by who reads it. Windows deal rows from a power
# of two of piles; an odd number meets all of them.
EXPECTED_ROW = 5
TAILS = ("keep", "drop", "pad")

# torch's own collate function stacks what it knows; lengths differ from row to row and stay lists.
default_collate_fn_map.setdefault(SeqLengths, lambda batch, *, collate_fn_map=None: list(batch))


class _Rows(Dataset[dict[str, Any]]):  # type: ignore[misc]
    """Rows of a set as samples. Who derives from it says which row of the set stands at which index."""

    places: RowPlaces

    def __init__(
        self, chunk_set: ChunkSet, columns: Sequence[str], dtype: torch.dtype, pad_id: int, mask_boundaries: bool, threads: int, max_bytes: int
    ) -> None:
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown or dtype not in (torch.int32, torch.int64):
            raise InvalidArgument(f"columns are {', '.join(COLUMNS)}, dtype is torch.int64 or torch.int32; got {list(columns)}, {dtype}")
        if not columns or threads < 0 or max_bytes < 0 or not torch.iinfo(dtype).min <= pad_id <= torch.iinfo(dtype).max:
            raise InvalidArgument(
                f"at least one column, threads and max_bytes of at least 0 and a pad_id that {dtype} holds are expected; got {list(columns)}, {threads}, "
                f"{max_bytes}, {pad_id}"
            )
        self.chunk_set = chunk_set
        self.columns = tuple(columns)
        self.dtype = dtype
        self.pad_id = pad_id
        self.mask_boundaries = mask_boundaries
        self._threads = threads
        self._max_bytes = max_bytes
        self._reader: tuple[int, RowReader] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None}

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, as HuggingFace data sets call them."""
        return list(self.columns)

    @property
    def sequence_length(self) -> int:
        """Tokens a row can hold."""
        return self.chunk_set.sequence_length

    def read_rows(self, rows: Sequence[int]) -> RowSamples:
        """These rows of the set."""
        batch = self._read_batch(self._rows(), rows)
        return RowSamples(batch, batch.pop("seq_lengths", None))

    def _read_batch(self, reader: RowReader, rows: Sequence[int]) -> dict[str, Any]:
        batch: dict[str, Any] = self._empty_columns(len(rows))
        columns: tuple[Any, ...] = (*map(batch.get, COLUMNS[:3]), self.pad_id, self.mask_boundaries)
        found = reader.read_into(rows, *columns)
        if "seq_lengths" in self.columns:
            batch["seq_lengths"] = lengths_by_row(*found)
        return batch

    def _empty_columns(self, rows: int) -> dict[str, torch.Tensor]:
        return {name: torch.empty((rows, self.sequence_length), dtype=self.dtype) for name in self.columns if name != "seq_lengths"}

    def _samples(self, tensors: dict[str, torch.Tensor], lengths: memoryview, row_pieces: memoryview) -> RowSamples:
        return RowSamples(tensors, lengths_by_row(lengths, row_pieces) if "seq_lengths" in self.columns else None)

    def _rows(self) -> RowReader:
        # A worker is itself somebody who works ahead: it decodes without a thread. After a fork the threads are in the parent.
        if self._reader is None or self._reader[0] != os.getpid():
            if self._reader is not None:
                self._reader[1].abandon()
            threads = 0 if get_worker_info() is not None else self._threads
            self._reader = (os.getpid(), RowReader(self.chunk_set._native, self._max_bytes, threads, self.places.order != "sequential"))
            if threads > 0:
                _readers_with_threads.add(self._reader[1])
        return self._reader[1]


# A fork in the middle of decoding would leave the child with locks that nobody opens.
_readers_with_threads: weakref.WeakSet[RowReader] = weakref.WeakSet()


def _pause_readers() -> None:
    for reader in list(_readers_with_threads):
        reader.pause()


def _go_on_reading() -> None:
    for reader in list(_readers_with_threads):
        reader.go_on()


def _leave_readers_alone() -> None:
    for reader in list(_readers_with_threads):
        reader.abandon()
    _readers_with_threads.clear()


os.register_at_fork(before=_pause_readers, after_in_parent=_go_on_reading, after_in_child=_leave_readers_alone)


def _open(directory: str | os.PathLike[str] | ChunkSet, allow_gaps: bool, tokenizer: Any) -> ChunkSet:
    return directory if isinstance(directory, ChunkSet) else ChunkSet(directory, allow_gaps=allow_gaps, tokenizer=tokenizer)


def _own_rank() -> tuple[int, int]:
    """Who we are among the ranks. Where accelerate is at work (HuggingFace's Trainer), it shares out batches itself, so all see all rows."""
    import sys

    accelerate = sys.modules.get("accelerate.state")
    if accelerate is not None and accelerate.PartialState._shared_state:
        return 0, 1
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class _SharedNumbers:
    """A few numbers that a process and its workers see alike, forked or spawned."""

    def __init__(self, count: int) -> None:
        self._tensor = torch.zeros(count, dtype=torch.int64).share_memory_()
        self._view = memoryview(self._tensor.numpy())  # A tensor takes a microsecond to give one number.

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared_numbers, (self._tensor,)

    def __getitem__(self, place: int) -> int:
        return int(self._view[place])

    def __setitem__(self, place: int, number: int) -> None:
        self._view[place] = number


def _shared_numbers(tensor: torch.Tensor) -> _SharedNumbers:
    numbers = _SharedNumbers.__new__(_SharedNumbers)
    numbers._tensor, numbers._view = tensor, memoryview(tensor.numpy())
    return numbers


# Places in the numbers that workers share with the main process.
_EPOCH, _START, _READ_BY_WORKERS = range(3)


class ChunkDataset(_Rows):
    """The rows of a chunk set in the order of an epoch: dataset[i] is the i-th row that this rank reads. Also iterable.

    directory: of the chunks, or a ChunkSet.
    shuffle: True or "windows": blocks of rows in a random order over the whole set, rows mixed within windows of 128 blocks;
        "exact": one random permutation of all rows, which decompresses a block for nearly every row; False: as the rows lie.
    rank, world_size: by default those of torch.distributed or torchrun; under accelerate, which shares out by itself, one rank has all.
    tail: when ranks cannot have equally many rows: "keep" gives the first ones one more, "drop" leaves out the last rows of the
        epoch, "pad" repeats its first rows. Ranks that meet in collective operations at every step want one of the latter two.
    split, train_fraction: "train" or "eval"; the last rows of each chunk, 1 - train_fraction of all, are kept for evaluation.
    columns: some of input_ids, labels, position_ids, seq_lengths. labels: the ids, -100 on padding and, if mask_boundaries, on the first
        token after a boundary. position_ids restart at each document. seq_lengths: the lengths of the documents.
    threads: that decode ahead in this process, also for DataLoader's workers (lmemo/_torch_late.py).

    With a DataLoader's workers this object is not told how far they are consumed: ChunkLoader knows.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | ChunkSet,
        *,
        seed: int = 0,
        shuffle: bool | str = True,
        rank: int | None = None,
        world_size: int | None = None,
        tail: str = "keep",
        split: str = "train",
        train_fraction: float = 1.0,
        columns: Sequence[str] = COLUMNS,
        dtype: torch.dtype = torch.int64,
        pad_id: int = 0,
        mask_boundaries: bool = False,
        threads: int = 1,
        max_bytes: int | None = None,
        tokenizer: Any = None,
        allow_gaps: bool = False,
    ) -> None:
        if (rank is None) != (world_size is None) or (rank is not None and world_size is not None and not 0 <= rank < world_size):
            raise InvalidArgument(f"rank={rank}, world_size={world_size}: expected both or neither, and rank below world_size")
        if tail not in TAILS:
            raise InvalidArgument(f"tail is {tail!r}; expected one of {', '.join(TAILS)}")
        chunk_set = _open(directory, allow_gaps, tokenizer)
        self.places = RowPlaces(chunk_set, seed, shuffle, split, train_fraction)
        # Two windows, one that is read and one that is decoded ahead; a tenth more for the lengths.
        token_bytes = 2.2 if chunk_set._native.parameters["vocab_size"] <= 1 << 16 else 4.4
        needed = int(2 * self.places.window_rows * chunk_set.sequence_length * token_bytes)
        super().__init__(chunk_set, columns, dtype, pad_id, mask_boundaries, threads, max_bytes or max(needed, 8 << 20))
        self.tail = tail
        self._rank = None if rank is None or world_size is None else (rank, world_size)
        # What workers have to know of set_epoch() and load_state_dict(), also those that live longer than an epoch.
        self._shared = _SharedNumbers(3)
        self._consumed: int | None = None  # By who read in this process.
        self._expected: tuple[RowOrder | None, int] = (None, 0)  # Up to which place threads were told to decode.
        self._name = name_of(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rank": self.rank_and_world, "_expected": (None, 0)}  # A worker does not know the ranks.

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._name = name_of(self, self._name)
        if self.places.chunks > len(self.chunk_set.chunk_rows) or self.chunk_set.digest_of_first(self.places.chunks) != self.places.identity:
            raise Incompatible(f"{self.chunk_set.directory} was changed since the data set was made that is unpickled here: open it again")

    @property
    def rank_and_world(self) -> tuple[int, int]:
        """(rank, world_size), as given or as found."""
        if self._rank is not None:
            return self._rank
        found = _own_rank()
        if get_worker_info() is not None:
            self._rank = found  # A worker stays what it was forked as, and looking takes longer than naming a row.
        return found

    @property
    def epoch(self) -> int:
        """The epoch whose order is read."""
        return self._shared[_EPOCH]

    @property
    def start(self) -> int:
        """Rows of the epoch that all ranks together had read when the state was loaded; index 0 comes behind them."""
        return self._shared[_START]

    @property
    def origin(self) -> tuple[int, int, int]:
        """What index 0 means: how many states were loaded, the epoch, and its first row."""
        return self.places.generation, self.epoch, self.start

    def __len__(self) -> int:
        return self.length_from(self.start)

    def length_from(self, start: int, rank: int | None = None) -> int:
        """How many rows this rank, or another, reads behind so many rows of an epoch."""
        own, world_size = self.rank_and_world
        rank = own if rank is None else rank
        left = self.places.rows - start
        if self.tail == "keep":
            return max(0, -(-(left - rank) // world_size))
        return left // world_size if self.tail == "drop" else -(-left // world_size)

    def rows_of(self, first: int, count: int) -> list[int]:
        """The numbers, in the set, of rows that this rank reads."""
        rank, world_size = self.rank_and_world
        order = self.places.order_of(self.epoch)
        place = self.start + rank + first * world_size
        there = max(0, min(count, -(-(self.places.rows - place) // world_size)))
        rows = order.rows_at(place, world_size, there)
        for index in range(there, count):  # Only with tail="pad".
            rows += order.rows_at((place + index * world_size) % self.places.rows, 1, 1)
        return rows

    def read_range(self, first: int, count: int, into: dict[str, torch.Tensor] | None = None) -> tuple[dict[str, torch.Tensor], memoryview, memoryview]:
        """Neighbouring rows: the columns, the lengths of all documents, and where those of each row start."""
        rank, world_size = self.rank_and_world
        reader, order = self._rows(), self.places.order_of(self.epoch)
        place, rows = self.start + rank + first * world_size, self.places.rows
        tensors = self._empty_columns(count) if into is None else into
        columns: tuple[Any, ...] = (*map(tensors.get, COLUMNS[:3]), self.pad_id, self.mask_boundaries)
        if place + (count - 1) * world_size < rows:
            self._expect(reader, order, place, count, world_size)
            lengths, row_pieces = reader.read_places_into(order, place, world_size, count, *columns)
        else:
            lengths, row_pieces = reader.read_into(self.rows_of(first, count), *columns)
        self._consumed = self.start + (first + count) * world_size
        return tensors, lengths, row_pieces

    def _expect(self, reader: RowReader, order: RowOrder, place: int, count: int, stride: int) -> None:
        """Threads decode what comes within a window: half of one and they would rest while it is read, and be waited for at its end."""
        if self._threads == 0 or self.places.order == "exact":
            return
        window, step = self.places.window_rows, stride * EXPECTED_ROW
        end = min(self.places.rows, place + (count + window // stride) * stride)
        of_order, expected = self._expected
        # Workers' batches may overtake one another by a little.
        goes_on = of_order is order and place <= expected <= end + window and (expected - place) % stride == 0
        if goes_on and end - expected < window // 8 and expected < self.places.rows:
            return  # They have enough to do, and are told of the next rows all at once.
        begin = expected if goes_on else place
        there = -(-(end - begin) // step)
        if there > 0:
            reader.expect_places(order, begin, step, there)
            self._expected = (order, begin + there * step)

    def work_ahead(self, threads: int) -> None:
        """At least so many threads of this process decode ahead from now on."""
        if threads > self._threads:
            self._threads = threads
            self._reader = None

    def __getitems__(self, indices: Sequence[int]) -> RowSamples:
        are_neighbours = list(indices) == list(range(indices[0], indices[0] + len(indices))) if indices else False
        count = len(self)
        for index in (indices[0], indices[-1]) if are_neighbours else indices:
            if not 0 <= index < count:
                raise IndexError(f"row {index} of {count} in this epoch")
        if get_worker_info() is not None:
            return self._late_samples(indices, are_neighbours)
        if are_neighbours:
            return self._samples(*self.read_range(indices[0], len(indices)))
        samples = self.read_rows(self._rows_at(indices))
        if indices:
            self._consumed = self.start + (max(indices) + 1) * self.rank_and_world[1]
        return samples

    def _rows_at(self, indices: Sequence[int]) -> list[int]:
        return [self.rows_of(index, 1)[0] for index in indices]

    def _late_samples(self, indices: Sequence[int], are_neighbours: bool) -> LateSamples:
        """What a worker tells of these rows."""
        self._shared[_READ_BY_WORKERS] = 1
        if are_neighbours:
            rows, (rank, world_size) = self.rows_of(indices[0], len(indices)), self.rank_and_world
            address = RowAddress(self._name, rows, (self.places.generation, self.epoch, self.start + rank + indices[0] * world_size, world_size))
        else:
            address = RowAddress(self._name, self._rows_at(indices), None)
        return LateSamples(self.read_rows, address)

    def batch_for_worker(self, rows: Sequence[int], places: tuple[int, int, int, int] | None) -> dict[str, Any]:
        """What a worker named (see RowAddress), read in this process, whose threads decode what comes next. All of it is on the way of every batch."""
        reader = self._rows()
        if places is not None:
            generation, epoch, place, stride = places
            if generation == self.places.generation and place < self.places.rows:
                self._expect(reader, self.places.order_of(epoch), place, len(rows), stride)
        return self._read_batch(reader, rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.__getitems__([index + len(self) if index < 0 else index])[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        start, count, world_size = self.start, len(self), self.rank_and_world[1]
        for begin in range(0, count, 64):
            for offset, sample in enumerate(self.__getitems__(range(begin, min(begin + 64, count)))):
                self._consumed = start + (begin + offset + 1) * world_size
                yield sample

    def collate(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A batch: the columns as tensors, seq_lengths as lists. For DataLoader(dataset, collate_fn=dataset.collate)."""
        if isinstance(samples, LateSamples) and is_asked_by_fetcher():
            return cast("dict[str, Any]", LateBatch(samples))  # Which it is when it arrives.
        return RowSamples.of(samples).as_batch()

    def set_epoch(self, epoch: int) -> None:
        """The order of another epoch, from its start. The epoch that a loaded state is in goes on where it was."""
        if epoch < 0:
            raise InvalidArgument(f"epoch is {epoch}; epochs are counted from 0 on")
        if epoch != self.epoch:
            self._shared[_EPOCH], self._shared[_START] = epoch, 0
            self._consumed = None

    def state_dict(self, *, rows_consumed: int | None = None) -> dict[str, Any]:
        """Where all ranks are, in a few numbers.

        rows_consumed: rows of this epoch that all ranks together have used, loaded state included. By default what was read in this process, assuming
        that every rank has read as much.
        """
        if rows_consumed is None:
            if self._consumed is None and self._shared[_READ_BY_WORKERS]:
                raise InvalidArgument(
                    "workers of a DataLoader have read rows, and run ahead of what was used of them: take ChunkLoader, whose state_dict() "
                    "knows, or give rows_consumed"
                )
            rows_consumed = self.start if self._consumed is None else self._consumed
        return self.places.state(self.epoch, rows_consumed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was saved, also with other ranks and workers, and also if the set has grown since."""
        epoch, consumed = self.places.load(state, self.chunk_set)
        self._shared[_EPOCH], self._shared[_START], self._shared[_READ_BY_WORKERS] = epoch, consumed, 0
        self._consumed = None

    def iterable(self, batch_size: int | None = None) -> ChunkStream:
        """The same as an IterableDataset: rows, or whole batches for DataLoader(…, batch_size=None)."""
        return ChunkStream(self, batch_size)


class TrainingRows(_Rows):
    """A whole training as one row of rows: index i is the i-th row that is trained on, epoch after epoch. For HuggingFace's Trainer.

    Trainer then sees one epoch of `rows × epochs`, whose indices it shares out among ranks and workers and skips on resume by itself, and
    lmemo.trainer.ChunkSetCallback only has to say what stands at which index.
    """

    def __init__(self, dataset: ChunkDataset, epochs: float = 1) -> None:
        super().__init__(
            dataset.chunk_set, dataset.columns, dataset.dtype, dataset.pad_id, dataset.mask_boundaries, dataset._threads, dataset._max_bytes
        )
        self.places = dataset.places
        self.epochs = epochs
        self._index, self._epoch, self._consumed = 0, dataset.epoch, dataset.start

    def __len__(self) -> int:
        from fractions import Fraction

        left = int(self.places.rows * (Fraction(str(self.epochs)) - self._epoch)) - self._consumed
        return self._index + max(0, left)

    def locate(self, index: int) -> tuple[int, int]:
        """(epoch, place in it) of an index."""
        place = index - self._index + self._consumed
        # Before the loaded state: only accelerate asks, which fills the last batch with the first indices. Training ends before it.
        if place < 0:
            return self._epoch, place % self.places.rows
        return self._epoch + place // self.places.rows, place % self.places.rows

    def rows_of(self, indices: Sequence[int]) -> list[int]:
        """The numbers, in the set, of the rows at these indices."""
        rows: list[int] = []
        at = 0
        while at < len(indices):
            epoch, place = self.locate(indices[at])
            count = 1
            while at + count < len(indices) and indices[at + count] == indices[at] + count and place + count < self.places.rows:
                count += 1
            rows += self.places.order_of(epoch).rows_at(place, 1, count)
            at += count
        return rows

    def __getitems__(self, indices: Sequence[int]) -> RowSamples:
        return self.read_rows(self.rows_of(indices))

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of {len(self)} in this training")
        return self.__getitems__([index])[0]

    def state_at(self, index: int) -> dict[str, Any]:
        """The state when all rows before this index have been trained on."""
        if index == self._index:
            return self.places.state(self._epoch, self._consumed)
        epoch, place = self.locate(index - 1)
        return self.places.state(epoch, place + 1)

    def go_on_at(self, index: int, state: Mapping[str, Any]) -> None:
        """From this index on follows what was not read when the state was saved; the set may have grown since."""
        epoch, consumed = self.places.load(state, self.chunk_set)
        if consumed >= self.places.rows > 0:  # The epoch is over, and new ones start with all rows.
            epoch, consumed = epoch + 1, 0
        self._index, self._epoch, self._consumed = index, epoch, consumed

    def as_hf_dataset(self) -> Any:
        """The same as a datasets.Dataset, which TRL insists on: give it dataset_kwargs={"skip_prepare_dataset": True}."""
        import datasets

        indices = list(range(len(self)))
        table = datasets.Dataset.from_dict({name: indices for name in self.columns})
        return table.with_transform(_Transform(self))


class _Transform:
    """Indices to rows, for datasets.Dataset."""

    def __init__(self, rows: TrainingRows) -> None:
        self.rows = rows

    def __call__(self, table: dict[str, list[int]]) -> dict[str, list[Any]]:
        indices = next(iter(table.values()))
        batch = self.rows.__getitems__(indices).as_batch()
        # Rows as numpy: TRL makes tensors of what it gets, and torch warns about tensors made of tensors.
        return {name: batch[name] if name == "seq_lengths" else list(batch[name].numpy()) for name in table}
