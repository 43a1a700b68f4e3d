"""Rows that a DataLoader's worker only names, and that the process which uses them decodes.

A worker that decodes hands every batch over in new shared memory, whose pages are made and thrown away again, and it decodes every block of a window, as
the other workers do. So a worker gets LateSamples: which rows, not what is in them. Whoever looks at one has them decoded on the spot. If nobody
does, because ChunkDataset.collate or torch's default_collate is all there is to do, the batch crosses as its row numbers, and becomes a plain dict of
tensors when it is unpickled, read by the threads of the data set that the worker has a copy of.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from torch._utils import ExceptionWrapper
from torch.utils.data._utils import collate, fetch
from torch.utils.data._utils.collate import default_collate_fn_map

from lmemo._errors import InvalidArgument
from lmemo._torch_rows import RowSamples

if TYPE_CHECKING:
    import torch

    from lmemo.torch import ChunkDataset

# Data sets of this process by the names that their copies in workers know them by. A copy made by fork or spawn keeps the name.
_datasets: weakref.WeakValueDictionary[str, ChunkDataset] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def name_of(dataset: ChunkDataset, name: str | None = None) -> str:
    """A name by which workers can tell what they have a copy of: this one, unless another object here has it."""
    if name is None or _datasets.get(name, dataset) is not dataset:
        name = f"{os.getpid()}-{next(_numbers)}"
    _datasets[name] = dataset
    return name


class RowAddress(NamedTuple):
    """Some rows of a data set, and where in which order they stand, so that a reader knows what comes next."""

    dataset: str
    rows: Sequence[int]
    places: tuple[int, int, int, int] | None  # Generation of the order, epoch, first place, distance.


class LateSamples(RowSamples):
    """Samples that are read when somebody looks at one of them."""

    def __init__(self, read: Callable[[Sequence[int]], RowSamples], address: RowAddress) -> None:
        self._read = read
        self.address = address

    @cached_property
    def _samples(self) -> RowSamples:
        return self._read(self.address.rows)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """The columns."""
        return self._samples.tensors

    @property
    def seq_lengths(self) -> list[list[int]] | None:  # type: ignore[override]
        """The lengths of the documents, row by row."""
        return self._samples.seq_lengths

    def __len__(self) -> int:
        return len(self.address.rows)

    def __getitem__(self, index: Any) -> Any:
        if index == 0 and is_asked_by_fetcher():
            return _FirstSample()
        return super().__getitem__(index)

    def __reduce__(self) -> tuple[Any, ...]:
        return _samples_at, tuple(self.address)


class LateBatch:
    """A batch on its way: unpickled, it is the batch."""

    def __init__(self, samples: LateSamples) -> None:
        self._address = samples.address

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch_at, tuple(self._address)


class _FirstSample:
    """What default_collate asks for, to see by its type how to go on: all samples together are a LateBatch."""


default_collate_fn_map[_FirstSample] = lambda batch, *, collate_fn_map=None: LateBatch(batch)


def is_asked_by_fetcher() -> bool:
    """Whether what our caller returns goes from torch's fetcher, perhaps through default_collate, straight to the main process.

    Anybody else who calls has plans with the rows. Where torch does not call as it did, the rows are decoded in the worker.
    """
    frame = sys._getframe(2)
    while frame.f_globals is collate.__dict__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals is fetch.__dict__


def _samples_at(*address: Any) -> RowSamples | ExceptionWrapper:
    """Unpickles LateSamples."""
    batch = _batch_at(*address)
    return batch if isinstance(batch, ExceptionWrapper) else RowSamples(batch, batch.pop("seq_lengths", None))


def _batch_at(name: str, rows: Sequence[int], places: tuple[int, int, int, int] | None) -> dict[str, Any] | ExceptionWrapper:
    """Unpickles a LateBatch."""
    try:
        dataset = _datasets.get(name)
        if dataset is None:
            raise InvalidArgument("a batch of a DataLoader's worker arrived in a process that does not have its ChunkDataset")
        return dataset.batch_for_worker(rows, places)
    except Exception:
        if threading.current_thread() is threading.main_thread():
            raise
        return ExceptionWrapper(where="in the thread that pins memory")  # An exception would end it; this one torch raises.
