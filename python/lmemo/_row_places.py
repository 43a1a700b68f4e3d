"""Where a reader stands: which rows of a chunk set it reads in which order, and how much of that is done.

The state is a few numbers. `consumed` counts rows of the current epoch over all ranks; what was consumed is always a prefix of the order.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmemo._core import RowOrder
from lmemo._errors import Incompatible, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmemo.chunk_set import ChunkSet

VERSION = 1
WINDOW_TOKENS = 1 << 23  # Decoded twice as many lie in memory.
LEAST_WINDOW_BLOCKS, MOST_WINDOW_BLOCKS = 32, 128
LANES = 16
ORDERS = {True: "windows", False: "sequential", "windows": "windows", "exact": "exact", "sequential": "sequential"}


class RowPlaces:
    """The order of the rows of one split of a set, epoch by epoch. Values, no files: cheap to copy and to send."""

    def __init__(self, chunk_set: ChunkSet, seed: int, shuffle: bool | str, split: str, train_fraction: float) -> None:
        if shuffle not in ORDERS:
            raise InvalidArgument(f"shuffle is {shuffle!r}; expected True, False, 'windows' or 'exact'")
        if split not in ("train", "eval") or not 0 < train_fraction <= 1:
            raise InvalidArgument(f"split is {split!r} of {train_fraction}; expected 'train' or 'eval' of a fraction above 0 and at most 1")
        self.order = ORDERS[shuffle]
        self.seed = seed % (1 << 64)
        self.split = split
        self.train_fraction = train_fraction
        self.block_rows = chunk_set._native.block_rows
        block_tokens = self.block_rows * chunk_set.sequence_length
        self.window_blocks = max(LEAST_WINDOW_BLOCKS, min(MOST_WINDOW_BLOCKS, WINDOW_TOKENS // block_tokens))
        self.lanes = LANES
        self.all_rows = len(chunk_set)
        self.chunks = len(chunk_set.chunk_rows)
        self.identity = chunk_set.identity
        self.growths: list[tuple[int, int]] = []
        self.growths_epoch = 0
        self.chunk_rows, self.chunk_starts = _split_rows(chunk_set.chunk_rows, split, train_fraction)
        self.rows = sum(self.chunk_rows)
        self.generation = 0  # Of the orders: another state was loaded so many times.
        self._orders: dict[int, RowOrder] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_orders": {}}

    @property
    def window_rows(self) -> int:
        """How far to look ahead."""
        return self.block_rows * (self.window_blocks if self.order == "windows" else 4)

    def order_of(self, epoch: int) -> RowOrder:
        """The order of this epoch."""
        found = self._orders.get(epoch)
        if found is None:
            growths = self.growths if epoch == self.growths_epoch else []
            found = RowOrder.make(
                self.chunk_rows, self.order, self.seed, epoch, self.block_rows, self.window_blocks, self.lanes, growths, self.chunk_starts
            )
            while len(self._orders) > 1:
                self._orders.pop(next(iter(self._orders)))
            self._orders[epoch] = found
        return found

    def state(self, epoch: int, consumed: int) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "epoch": epoch,
            "consumed": min(consumed, self.rows),
            "order": self.order,
            "block_rows": self.block_rows,
            "window_blocks": self.window_blocks,
            "lanes": self.lanes,
            "split": self.split,
            "train_fraction": self.train_fraction,
            "growths": [list(growth) for growth in self.growths] if epoch == self.growths_epoch else [],
            "set": self.identity,
            "chunks": self.chunks,
            "rows": self.all_rows,
        }

    def load(self, state: Mapping[str, Any], chunk_set: ChunkSet) -> tuple[int, int]:
        """Takes a state over; (epoch, consumed). The set may have grown since: the unread rows and the new ones follow."""
        if state.get("version") != VERSION:
            raise Incompatible(f"the state of a reader has version {state.get('version')}; this lmemo reads version {VERSION}")
        missing = [name for name in self.state(0, 0) if name not in state]
        if missing:
            raise Incompatible(f"the state of a reader lacks {', '.join(missing)}; it was cut or made by something else")
        for name in ("split", "train_fraction"):
            if state[name] != getattr(self, name):
                raise Incompatible(f"the state was saved with {name}={state[name]!r}, this reader has {getattr(self, name)!r}")
        chunks, epoch, consumed = int(state["chunks"]), int(state["epoch"]), int(state["consumed"])
        if chunks > self.chunks or chunk_set.digest_of_first(chunks) != state["set"]:
            raise Incompatible(
                f"the state was saved with a set of {chunks} chunks and {state['rows']} rows; {chunk_set.directory}, with {self.chunks} chunks "
                f"and {self.all_rows} rows, is neither that set nor a continuation of it"
            )
        growths = [(int(before), int(read)) for before, read in state["growths"]]
        if not (0 <= consumed <= int(state["rows"]) and epoch >= 0 and all(0 < before <= chunks and 0 <= read <= consumed for before, read in growths)):
            raise Incompatible(f"the state of a reader was damaged: epoch {epoch}, {consumed} of {state['rows']} rows consumed, growths {growths}")
        if state["order"] not in ORDERS.values() or min(int(state[name]) for name in ("block_rows", "window_blocks", "lanes")) < 1:
            raise Incompatible(f"the state of a reader was damaged: order {state['order']!r}")
        if self.chunks > chunks and (consumed > 0 or growths):
            growths.append((chunks, consumed))
        self.seed, self.order = int(state["seed"]), str(state["order"])
        self.block_rows, self.window_blocks, self.lanes = int(state["block_rows"]), int(state["window_blocks"]), int(state["lanes"])
        self.growths, self.growths_epoch = growths, epoch
        self.generation += 1
        self._orders.clear()
        return epoch, consumed


def _split_rows(chunk_rows: list[int], split: str, train_fraction: float) -> tuple[list[int], list[int]]:
    """The rows of each chunk that belong to a split, and the first of them.

    The last rows of each chunk are kept for evaluation, ⌊(1 - train_fraction) × rows⌋ up to its end. So the parts stay what they are
    when the set grows.
    """
    kept = 1 - Fraction(str(train_fraction))
    rows, starts, start = [], [], 0
    for count in chunk_rows:
        held_out = min(count, int((start + count) * kept) - int(start * kept))
        rows.append(held_out if split == "eval" else count - held_out)
        starts.append(start + count - held_out if split == "eval" else start)
        start += count
    return rows, starts
