"""TRL: a data set from source trees that SFTTrainer takes as it is, and the settings it needs for that.

    data = lmemo.trl.train_dataset("~/src/project", tokenizer, include=["**/*.py"], sequence_len=1024)
    trainer = SFTTrainer(model, args=SFTConfig(output_dir="out", **data.config), train_dataset=data.dataset, processing_class=tokenizer)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmemo import _core
from lmemo.sections import Run, SectionCache

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

__all__ = ["TrainDataset", "train_dataset"]


class TrainDataset(NamedTuple):
    """The rows, the settings for SFTConfig, and the run they come from."""

    dataset: Any
    """A `datasets.Dataset` with `input_ids` and `labels`."""
    config: dict[str, Any]
    """For `SFTConfig(**config)`: the rows are ready and cut, TRL has nothing left to prepare."""
    run: Run
    """Hits and misses."""


def train_dataset(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    tokenizer: Any,
    *,
    sequence_len: int | Literal["auto"] | None = "auto",
    store: _core.StoreBase | None = None,
    **sync_options: Any,
) -> TrainDataset:
    """Syncs source trees or documents, and gives the rows that SFTTrainer would have made of their files.

    The tokenizer is the one that the trainer gets as processing_class. Options are those of `SectionCache.sync`.
    """
    run = SectionCache(_core.Store() if store is None else store, tokenizer, sequence_len).sync(paths, **sync_options)
    config = {"max_length": run.sequence_len, "packing": False, "dataset_kwargs": {"skip_prepare_dataset": True}}
    return TrainDataset(run.to_dataset(), config, run)
