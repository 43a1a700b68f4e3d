"""Batches in order, from this process or from worker processes, and a state that is exact in both cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from lmemo._errors import InvalidArgument
from lmemo._torch_context import worker_context
from lmemo._torch_late import LateBatch

if TYPE_CHECKING:
    from lmemo._torch_rows import RowSamples
    from lmemo.torch import ChunkDataset


class _Batches(Dataset[Any]):  # type: ignore[misc]
    """Batches that a worker process finishes."""

    def __init__(self, dataset: ChunkDataset, batch_size: int, rows: int, collate: Callable[[Any], Any]) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.rows = rows
        self.collate = collate

    def __len__(self) -> int:
        return -(-self.rows // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        first = index * self.batch_size
        return self.collate(self.dataset.__getitems__(range(first, min(first + self.batch_size, self.rows))))


def _as_it_is(item: Any) -> Any:
    return item


class ChunkLoader:
    """A DataLoader over a ChunkDataset that knows how much of it was used.

    batch_size: rows of each batch of this rank.
    num_workers: how many work ahead. They are threads of this process that decode blocks, without the GIL and without a way between
        processes; with a collate_fn, which is Python, or with an option of torch's DataLoader they are its worker processes.
        0 leaves the number of threads to the data set.
    collate_fn: gets the rows of a batch; by default the batch is {column: tensor [rows, length], "seq_lengths": lists}.
    drop_last: leave out a last batch with fewer rows.
    options: for torch's DataLoader; its multiprocessing_context is worker_context(), or that of the start method named.

    Iterating it reads the current epoch from where it is to its end; the next time, the next epoch.
    """

    def __init__(
        self,
        dataset: ChunkDataset,
        batch_size: int = 1,
        *,
        num_workers: int = 0,
        collate_fn: Callable[[RowSamples], Any] | None = None,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        if batch_size < 1:
            raise InvalidArgument(f"batch_size is {batch_size}; expected at least 1")
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.drop_last = drop_last
        self._collate = collate_fn
        self._options = options
        self._consumed: int | None = None  # Rows of this epoch, over all ranks; None: as the data set says.
        self._is_over = False              # All of the epoch was read; the next iteration is of the next one.

    def __len__(self) -> int:
        rows = self._rows()
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def _rows(self) -> int:
        rows = len(self.dataset)
        return rows - rows % self.batch_size if self.drop_last else rows

    def __iter__(self) -> Iterator[Any]:
        if self._is_over:
            self.set_epoch(self.dataset.epoch + 1)
        elif self._consumed is not None:  # An iteration was left before its end: the next one goes on behind it.
            self.dataset.load_state_dict(self.state_dict())
        world_size = self.dataset.rank_and_world[1]
        self._consumed = start = self.dataset.start
        done = 0
        for batch, rows in self._batches():
            done += rows
            self._consumed = start + done * world_size
            yield batch
        self._is_over = True

    def _batches(self) -> Iterator[tuple[Any, int]]:
        rows, per_batch = self._rows(), self.batch_size
        if self.num_workers == 0 or (self._collate is None and not self._options):
            self.dataset.work_ahead(self.num_workers)
            for first in range(0, rows, per_batch):
                samples = self.dataset.__getitems__(range(first, min(first + per_batch, rows)))
                yield self._collate(samples) if self._collate else samples.as_batch(), len(samples)
            return
        batches = _Batches(self.dataset, per_batch, rows, self._collate or LateBatch)
        loader = DataLoader(batches, batch_size=None, num_workers=self.num_workers, collate_fn=_as_it_is, **self._worker_options())
        for number, item in enumerate(loader):
            yield item, min(per_batch, rows - number * per_batch)

    def _worker_options(self) -> dict[str, Any]:
        start = self._options.get("multiprocessing_context")
        return {**self._options, "multiprocessing_context": worker_context(start) if start is None or isinstance(start, str) else start}

    def set_epoch(self, epoch: int) -> None:
        """The order of another epoch, from its start."""
        if epoch != self.dataset.epoch:
            self.dataset.set_epoch(epoch)
            self._consumed = None
        self._is_over = False

    def state_dict(self) -> dict[str, Any]:
        """Where all ranks are, if each has used as many batches as this one."""
        return self.dataset.state_dict(rows_consumed=self.dataset.start if self._consumed is None else self._consumed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was saved, with any number of ranks and workers."""
        self.dataset.load_state_dict(state)
        self._consumed = None
        self._is_over = self.dataset.start >= self.dataset.places.rows


class ChunkStream(IterableDataset[Any]):  # type: ignore[misc]
    """The rows of a ChunkDataset one by one, or as whole batches if batch_size is given.

    Workers of a DataLoader take turns, row by row or batch by batch; so with batches and DataLoader(…, batch_size=None) their
    order is the same with any number of workers.
    """

    def __init__(self, dataset: ChunkDataset, batch_size: int | None = None) -> None:
        self.dataset = dataset
        self.batch_size = batch_size

    def __len__(self) -> int:
        return len(self.dataset) if self.batch_size is None else -(-len(self.dataset) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        rows = len(self.dataset)
        if self.batch_size is None:
            for first in range(number, rows, workers * 64):
                yield from self.dataset.__getitems__(list(range(first, min(first + workers * 64, rows), workers)))
            return
        for first in range(number * self.batch_size, rows, workers * self.batch_size):
            yield self.dataset.__getitems__(range(first, min(first + self.batch_size, rows))).as_batch()

    def set_epoch(self, epoch: int) -> None:
        """The order of another epoch."""
        self.dataset.set_epoch(epoch)

    def state_dict(self, *, rows_consumed: int | None = None) -> dict[str, Any]:
        """As ChunkDataset.state_dict()."""
        return self.dataset.state_dict(rows_consumed=rows_consumed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As ChunkDataset.load_state_dict()."""
        self.dataset.load_state_dict(state)
