"""How many steps a training takes, and how it goes on after its chunk set has grown.

    from lmemo.training import TrainingPlan

    plan = TrainingPlan(rows=len(chunk_set), epochs=3, batch_size=8, gradient_accumulation=4, world_size=2, warmup_fraction=0.03)
    plan.steps, plan.warmup_steps

    adapted = plan.adapt(checkpoint_info, chunk_set)   # What a checkpoint says, and the set as it is now.
    adapted.steps, adapted.remaining_steps, adapted.grew
    dataset.load_state_dict(adapted.state)             # Goes on with rows that were not seen yet, old and new.

The formulas, all in exact arithmetic (0.1 means one tenth):

    global batch = batch_size × gradient_accumulation × world_size
    steps        = ⌊rows × train_fraction × epochs / global batch⌋
    warm-up      = ⌊warmup_fraction × steps⌋, where steps are those of full_dataset_rows if that is given
    after growth = completed steps + ⌊(rows × train_fraction × epochs not yet begun + rows not yet read in this epoch) / global batch⌋

full_dataset_rows is the estimate of how many rows there will be when all data has arrived: a warm-up made for it does not change
while the set grows. As long as it is longer than the training itself, TrainingPlan warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import Any, Protocol

from lmemo._errors import Incompatible

__all__ = ["AdaptedPlan", "GrowingSet", "TrainingPlan"]


class GrowingSet(Protocol):
    """What adapt() asks of a set; lmemo.ChunkSet is one."""

    @property
    def chunk_rows(self) -> Sequence[int]:
        """The rows of each chunk."""

    def digest_of_first(self, chunks: int) -> str:
        """A digest of what the first so many chunks hold."""


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


@dataclass(frozen=True)
class TrainingPlan:
    """Steps and warm-up of a training over `rows` rows; lmemo.training has the formulas.

    batch_size: rows per device and micro-batch.
    train_fraction: the part of the rows that is trained on; the rest is kept for evaluation.
    full_dataset_rows: the estimate of the whole data set, if this is only a part of it.
    """

    rows: int
    epochs: float = 1
    batch_size: int = 1
    gradient_accumulation: int = 1
    world_size: int = 1
    train_fraction: float = 1.0
    warmup_fraction: float = 0.0
    full_dataset_rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "gradient_accumulation", "world_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 1")
        if self.rows < 0 or self.epochs < 0 or (self.full_dataset_rows or 0) < 0:
            raise ValueError("rows, epochs and full_dataset_rows cannot be negative")
        if not 0 < self.train_fraction <= 1 or not 0 <= self.warmup_fraction <= 1:
            raise ValueError("train_fraction is above 0 and at most 1, warmup_fraction from 0 to 1")
        warning = self.warning
        if warning is not None:
            warnings.warn(warning, UserWarning, stacklevel=3)

    @property
    def global_batch(self) -> int:
        """Rows per optimizer step, over all ranks."""
        return self.batch_size * self.gradient_accumulation * self.world_size

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole training."""
        return self._steps_for(self.rows)

    @property
    def warmup_steps(self) -> int:
        """Steps of warm-up, from the estimate of the full data set if there is one."""
        full = self.rows if self.full_dataset_rows is None else self.full_dataset_rows
        return floor(_exact(self.warmup_fraction) * self._steps_for(full))

    @property
    def warning(self) -> str | None:
        """What is odd about this plan."""
        if self.warmup_steps > self.steps:
            return (
                f"the warm-up of {self.warmup_steps} steps, made for {self.full_dataset_rows} rows, is longer than the {self.steps} steps "
                f"that {self.rows} rows give: the learning rate will not reach its peak; add data, or leave out full_dataset_rows"
            )
        return None

    def _steps_for(self, rows: int) -> int:
        return floor(rows * _exact(self.train_fraction) * _exact(self.epochs) / self.global_batch)

    def adapt(self, checkpoint_info: Mapping[str, Any], chunk_set: GrowingSet) -> AdaptedPlan:
        """This plan for the set as it is now, and where to go on.

        checkpoint_info: what ChunkSetCallback stores, or {"global_step": …, **dataset.state_dict()}.
        Raises lmemo.Incompatible if the set is not the one of the checkpoint, grown or not.
        """
        state = dict(checkpoint_info)
        missing = [name for name in ("global_step", "set", "chunks", "rows", "epoch", "consumed", "growths") if name not in state]
        if missing:
            raise Incompatible(f"the checkpoint says nothing of {', '.join(missing)}: take what ChunkSetCallback stores, or dataset.state_dict()")
        completed = int(state.pop("global_step"))
        chunk_rows = [int(rows) for rows in chunk_set.chunk_rows]
        rows, chunks_before, rows_before = sum(chunk_rows), int(state["chunks"]), int(state["rows"])
        if chunks_before > len(chunk_rows) or chunk_set.digest_of_first(chunks_before) != state["set"]:
            raise Incompatible(
                f"the checkpoint was made with a set of {chunks_before} chunks and {rows_before} rows, of which this one, with "
                f"{len(chunk_rows)} chunks and {rows} rows, is not a continuation; "
                "resume with the set of the checkpoint, or start the data anew by not loading its state"
            )
        grew = len(chunk_rows) > chunks_before
        if grew and (state["consumed"] or state["growths"]):
            state["growths"] = [*state["growths"], [chunks_before, int(state["consumed"])]]
        if grew:
            state.update(set=chunk_set.digest_of_first(len(chunk_rows)), chunks=len(chunk_rows), rows=rows)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Told once, by the plan that the caller made.
            plan = replace(self, rows=rows)
        epochs_left = _exact(self.epochs) - int(state["epoch"])
        rows_left = rows * _exact(self.train_fraction) * epochs_left - int(state["consumed"])
        remaining = max(0, floor(rows_left / self.global_batch))
        return AdaptedPlan(
            plan=plan,
            steps=completed + remaining,
            warmup_steps=plan.warmup_steps,
            completed_steps=completed,
            remaining_steps=remaining,
            grew=grew,
            rows_before=rows_before,
            rows=rows,
            state=state,
        )


@dataclass(frozen=True)
class AdaptedPlan:
    """A plan after a look at the set: how many steps there are now, and where to go on."""

    plan: TrainingPlan
    steps: int
    warmup_steps: int
    completed_steps: int
    remaining_steps: int
    grew: bool
    rows_before: int
    rows: int
    state: dict[str, Any] = field(repr=False)
    """For load_state_dict() of the data set."""

    @property
    def summary(self) -> str:
        """In a sentence."""
        what = f"the set grew from {self.rows_before:,} to {self.rows:,} rows" if self.grew else f"the set still has {self.rows:,} rows"
        return f"{what}: {self.completed_steps:,} of {self.steps:,} steps done, warm-up {self.warmup_steps:,}"
