"""Rows as samples and as batches, without a copy between the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import torch

COLUMNS = ("input_ids", "labels", "position_ids", "seq_lengths")


class SeqLengths(list[int]):
    """The lengths of the documents of one row. torch's default_collate keeps these as a list, for they differ from row to row."""


class RowSamples(Sequence[dict[str, Any]]):
    """Samples that already lie side by side as the tensors of a batch."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], seq_lengths: list[list[int]] | None) -> None:
        self.tensors = dict(tensors)
        self.seq_lengths = seq_lengths

    @classmethod
    def of(cls, samples: Sequence[Mapping[str, Any]]) -> RowSamples:
        """From any samples."""
        if isinstance(samples, cls):
            return samples
        names = [name for name in COLUMNS[:3] if name in samples[0]]
        tensors = {name: torch.stack([torch.as_tensor(sample[name]) for sample in samples]) for name in names}
        has_lengths = "seq_lengths" in samples[0]
        return cls(tensors, [[int(length) for length in sample["seq_lengths"]] for sample in samples] if has_lengths else None)

    def __len__(self) -> int:
        if self.seq_lengths is not None:
            return len(self.seq_lengths)
        return len(next(iter(self.tensors.values()))) if self.tensors else 0

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> RowSamples: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | RowSamples:
        if isinstance(index, slice):
            lengths = None if self.seq_lengths is None else self.seq_lengths[index]
            return RowSamples({name: tensor[index] for name, tensor in self.tensors.items()}, lengths)
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        sample: dict[str, Any] = {name: tensor[index] for name, tensor in self.tensors.items()}
        if self.seq_lengths is not None:
            sample["seq_lengths"] = SeqLengths(self.seq_lengths[index])
        return sample

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))

    def as_batch(self) -> dict[str, Any]:
        """The tensors, and seq_lengths as lists."""
        batch: dict[str, Any] = dict(self.tensors)
        if self.seq_lengths is not None:
            batch["seq_lengths"] = self.seq_lengths
        return batch
