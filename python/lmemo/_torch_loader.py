"""Batches in order, from this process or from worker processes, and a state that is exact in both cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler, get_worker_info

from lmemo._errors import InvalidArgument
from lmemo._torch_context import worker_context

if TYPE_CHECKING:
    from lmemo._torch_rows import RowSamples
    from lmemo.torch import ChunkDataset


# Options of torch's DataLoader that mean nothing new to threads: they last, look a window ahead, and draw no random numbers. Memory they pin as well.
FOR_THREADS = ("persistent_workers", "prefetch_factor", "generator", "pin_memory")


class _InOrder(Sampler[int]):  # type: ignore[misc]
    """The indices of a ChunkDataset."""

    def __init__(self, dataset: ChunkDataset) -> None:
        self.dataset = dataset
        self.first = 0  # Of the next iteration; those that follow it have all.

    def __iter__(self) -> Iterator[int]:
        first, self.first = self.first, 0
        return iter(range(first, len(self.dataset)))

    def __len__(self) -> int:
        return len(self.dataset)


class ChunkLoader(DataLoader[Any]):  # type: ignore[misc]
    """torch's DataLoader over a ChunkDataset, with threads for workers, that knows how much of it was used.

    batch_size: rows of each batch of this rank.
    num_workers: how many work ahead. They are threads of this process that decode blocks, without the GIL and without a way between
        processes; with a collate_fn, which is Python, or an option that speaks of processes (worker_init_fn, multiprocessing_context,
        timeout) they are torch's worker processes. 0 leaves the number of threads to the data set.
    collate_fn: gets the rows of a batch; by default the batch is {column: tensor [rows, length], "seq_lengths": lists}.
    drop_last: leave out a last batch with fewer rows.
    options: of torch's DataLoader; its multiprocessing_context is worker_context(), or that of the start method named. The order is the
        data set's, which also shares it out among ranks: samplers are refused.

    Iterating it reads the current epoch from where it is to its end; the next time, the next epoch. So a pass that is left goes on with the
    next one, except for split="eval": an evaluation begins anew.
    """

    dataset: ChunkDataset
    sampler: _InOrder
    batch_size: int

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
        if not hasattr(dataset, "work_ahead"):
            raise InvalidArgument(f"a ChunkLoader reads a ChunkDataset, not a {type(dataset).__name__}; torch's DataLoader takes any data set")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise InvalidArgument(f"batch_size is {batch_size!r}; expected a whole number of at least 1; rows one by one come from the data set itself")
        if any(options.pop(name, None) for name in ("shuffle", "sampler", "batch_sampler")) or not options.pop("in_order", True):
            raise InvalidArgument(
                "a ChunkLoader gives the rows in the order of its data set, which also shares them out among ranks: give shuffle, rank and "
                "world_size to ChunkDataset, and leave out samplers and in_order (with Lightning, Trainer(use_distributed_sampler=False))"
            )
        self._has_threads = collate_fn in (None, dataset.collate) and not any(value for name, value in options.items() if name not in FOR_THREADS)
        if num_workers > 0:
            start = options.get("multiprocessing_context")
            options["multiprocessing_context"] = worker_context(start) if start is None or isinstance(start, str) else start
        super().__init__(
            dataset, batch_size, sampler=_InOrder(dataset), num_workers=num_workers, collate_fn=collate_fn or dataset.collate, drop_last=drop_last, **options
        )
        self._used = (dataset.origin, 0)  # Rows of this rank, since the place that the data set begins at.
        self._ended: tuple[int, int, int] | None = None  # The origin of a pass that came to its end; the next one is of the next epoch.
        self._named: tuple[int, int, int] | None = None  # The origin that set_epoch() asked for: not skipped, even if it was read before.

    def __len__(self) -> int:
        """Batches of a whole epoch, also if a loaded state has put a part of it behind us."""
        return self._batches_of(self.dataset.length_from(0))

    @property
    def _used_rows(self) -> int:
        origin, used = self._used
        return used if origin == self.dataset.origin else 0  # It was given another epoch or state by others.

    def _batches_of(self, rows: int) -> int:
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def _has_ended(self) -> bool:
        """Whether the epoch was read to its end, here or when the loaded state was saved. All ranks say the same."""
        origin, start = self.dataset.origin, self.dataset.start
        if start == 0 or origin in (self._ended, self._named):
            return origin == self._ended
        return self._batches_of(self.dataset.length_from(start, rank=0)) == 0

    def __iter__(self) -> Iterator[Any]:
        if self._has_ended():
            self.set_epoch(self.dataset.epoch + 1)
        return self._pass(self.dataset.origin, 0 if self.dataset.places.split == "eval" else self._used_rows)

    def _pass(self, origin: tuple[int, int, int], used: int) -> Iterator[Any]:
        rows = len(self.dataset)
        end = used + min(rows - used, self._batches_of(rows - used) * self.batch_size)
        for batch in self._read(used, end):
            if self.dataset.origin != origin:
                raise InvalidArgument("the data set was given another epoch or state while its rows were read: begin a new pass")
            used = min(used + self.batch_size, end)
            self._used = (origin, used)
            if used == end:
                self._ended = origin  # Now: who counts batches does not come back for the end.
            yield batch
        self._ended = origin

    def _read(self, first: int, end: int) -> Iterator[Any]:
        if not self._has_threads and (self.num_workers > 0 or self.pin_memory):
            self.sampler.first = first
            yield from super().__iter__()
            return
        self.dataset.work_ahead(self.num_workers)
        pins = self.pin_memory and torch.accelerator.is_available()
        for begin in range(first, end, self.batch_size):
            batch = self.collate_fn(self.dataset.__getitems__(range(begin, min(begin + self.batch_size, end))))
            yield {name: column.pin_memory() if isinstance(column, torch.Tensor) else column for name, column in batch.items()} if pins else batch

    def set_epoch(self, epoch: int) -> None:
        """The order of another epoch, or of one that was read, from its start."""
        if epoch != self.dataset.epoch:
            self.dataset.set_epoch(epoch)
        elif self._ended == self.dataset.origin:
            self.dataset.load_state_dict(self.dataset.state_dict(rows_consumed=0))
        self._named = self.dataset.origin

    def state_dict(self) -> dict[str, Any]:
        """Where all ranks are, if each has used as many batches as this one."""
        return self.dataset.state_dict(rows_consumed=self.dataset.start + self._used_rows * self.dataset.rank_and_world[1])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was saved, with any number of ranks and workers."""
        self.dataset.load_state_dict(state)


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
