"""Chunk sets in HuggingFace's Trainer: checkpoints that know the data, and trainings that go on after the data has grown.

    from lmemo.torch import ChunkDataset, TrainingRows
    from lmemo.trainer import ChunkSetCallback
    from lmemo.training import TrainingPlan

    dataset = ChunkDataset("corpus.chunks", seed=7, columns=("input_ids", "labels", "position_ids"))
    plan = TrainingPlan(rows=len(dataset.chunk_set), epochs=2, batch_size=8, warmup_fraction=0.03)
    rows = TrainingRows(dataset, epochs=2)
    callback = ChunkSetCallback(rows, plan, resume_from_checkpoint=checkpoint)   # A directory, or None.
    arguments = TrainingArguments(..., max_steps=callback.steps, warmup_steps=callback.warmup_steps)
    Trainer(model, arguments, train_dataset=rows, callbacks=[callback]).train(resume_from_checkpoint=checkpoint)

TRL takes `train_dataset=rows.as_hf_dataset()` with `dataset_kwargs={"skip_prepare_dataset": True}`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from lmemo._errors import InvalidArgument

if TYPE_CHECKING:
    from lmemo.torch import TrainingRows
    from lmemo.training import AdaptedPlan, TrainingPlan

__all__ = ["ChunkSetCallback", "checkpoint_info"]

FILE_NAME = "lmemo_chunks.json"


def checkpoint_info(checkpoint: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint says about its chunk set: for TrainingPlan.adapt()."""
    path = os.path.join(checkpoint, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            info: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        raise InvalidArgument(
            f"{path} is not there: the checkpoint was made without ChunkSetCallback, so nobody knows which rows it has seen"
        ) from None
    return info


class ChunkSetCallback(TrainerCallback):  # type: ignore[misc]
    """Stores in every checkpoint which rows of which set were trained on, and on resume goes on with those that were not.

    rows: what the Trainer trains on.
    resume_from_checkpoint: the one that train() will be given. Its state is applied at once, so that `steps` and `warmup_steps` are
        right before the Trainer is made; without it, this happens when training begins.

    Trainer must take the rows in their order: args.train_sampling_strategy is set to "sequential", for they are shuffled already.
    """

    def __init__(self, rows: TrainingRows, plan: TrainingPlan, *, resume_from_checkpoint: str | os.PathLike[str] | None = None) -> None:
        self.rows = rows
        self.plan = plan
        self.adapted: AdaptedPlan | None = None
        self._resumed_step = 0
        if resume_from_checkpoint is not None:
            self._resume(checkpoint_info(resume_from_checkpoint))

    @property
    def steps(self) -> int:
        """Steps of the whole training, by what is known now: for TrainingArguments(max_steps=…)."""
        return self.plan.steps if self.adapted is None else self.adapted.steps

    @property
    def warmup_steps(self) -> int:
        """Steps of warm-up: for TrainingArguments(warmup_steps=…)."""
        return self.plan.warmup_steps if self.adapted is None else self.adapted.warmup_steps

    def _resume(self, info: dict[str, Any]) -> None:
        self.adapted = self.plan.adapt(info, self.rows.chunk_set)
        self._resumed_step = self.adapted.completed_steps
        # Trainer counts indices in batches of today's size, whatever it was before.
        self.rows.go_on_at(self._resumed_step * self.plan.global_batch, self.adapted.state)

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not hasattr(args, "train_sampling_strategy"):
            raise InvalidArgument("ChunkSetCallback needs transformers 5 or newer, whose Trainer can take rows in their order")
        args.train_sampling_strategy = "sequential"
        args.ignore_data_skip = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
        if batch != self.plan.global_batch:
            raise InvalidArgument(f"the plan has {self.plan.global_batch} rows in a step, the Trainer {batch}; make both the same")
        if state.global_step != self._resumed_step:
            self._resume(checkpoint_info(os.path.join(args.output_dir, f"checkpoint-{state.global_step}")))
        if self.adapted is not None and self.adapted.steps != state.max_steps:
            state.max_steps = self.adapted.steps  # The schedule of the learning rate was made for another number.

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        directory = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        info = {"global_step": state.global_step, **self.rows.state_at(state.global_step * self.plan.global_batch)}
        part = os.path.join(directory, f"{FILE_NAME}.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(info, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, os.path.join(directory, FILE_NAME))
