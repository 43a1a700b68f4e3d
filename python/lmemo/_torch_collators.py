"""Batches in which no document sees another: without padding for varlen attention, or with block-diagonal masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from lmemo._errors import InvalidArgument
from lmemo._torch_rows import RowSamples


def _with_lengths(samples: Sequence[Mapping[str, Any]]) -> tuple[RowSamples, list[list[int]]]:
    rows = RowSamples.of(samples)
    if rows.seq_lengths is None or "input_ids" not in rows.tensors:
        raise InvalidArgument("these collators need the columns input_ids and seq_lengths")
    return rows, rows.seq_lengths


def _positions(lengths: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.cat([torch.arange(length, dtype=dtype) for length in lengths]) if lengths else torch.empty(0, dtype=dtype)


class PaddingFreeCollator:
    """All documents of all rows in one line, [1, tokens], and where each begins: what FlashAttention's varlen functions take.

    Gives input_ids, labels, position_ids, cu_seqlens (int32) and max_seqlen; with for_transformers=True cu_seqlens and max_seqlen have the names
    that transformers' models take: cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k.

    The first label of each row is -100: in the line it would be predicted from another row. mask_boundaries does the same for each document.
    """

    def __init__(self, *, mask_boundaries: bool = False, for_transformers: bool = False) -> None:
        self.mask_boundaries = mask_boundaries
        self.for_transformers = for_transformers

    def __call__(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        rows, seq_lengths = _with_lengths(samples)
        ids = rows.tensors["input_ids"]
        flat_lengths = [length for lengths in seq_lengths for length in lengths]
        used = torch.tensor([sum(lengths) for lengths in seq_lengths], dtype=torch.int64)
        is_token = torch.arange(ids.shape[1]) < used[:, None]
        line = ids[is_token]
        labels = rows.tensors["labels"][is_token] if "labels" in rows.tensors else line.clone()

        ends = torch.tensor([0, *flat_lengths], dtype=torch.int64).cumsum(0)
        row_starts = used.cumsum(0) - used
        starts = ends[:-1] if self.mask_boundaries else row_starts[row_starts < len(labels)]
        labels[starts] = -100
        cu_seqlens, max_seqlen = ends.to(torch.int32), max(flat_lengths, default=0)
        batch: dict[str, Any] = {
            "input_ids": line[None],
            "labels": labels[None],
            "position_ids": _positions(flat_lengths, ids.dtype)[None],
        }
        if self.for_transformers:
            batch.update(cu_seq_lens_q=cu_seqlens, cu_seq_lens_k=cu_seqlens, max_length_q=max_seqlen, max_length_k=max_seqlen)
        else:
            batch.update(cu_seqlens=cu_seqlens, max_seqlen=max_seqlen)
        return batch


class BlockDiagonalCollator:
    """Rows as they are, [rows, sequence_length], and a causal attention mask [rows, 1, length, length] that keeps documents apart.

    For models without varlen attention. dtype: torch.bool (True: is seen), or a float type: 0 where seen, its lowest number elsewhere, as
    transformers' models add it. Padding sees itself alone, so that no line of the mask is empty.
    """

    def __init__(self, *, dtype: torch.dtype = torch.bool, mask_boundaries: bool = False) -> None:
        self.dtype = dtype
        self.mask_boundaries = mask_boundaries

    def __call__(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        rows, seq_lengths = _with_lengths(samples)
        ids = rows.tensors["input_ids"]
        count, length = ids.shape
        document = torch.empty((count, length), dtype=torch.int64)
        positions = torch.zeros_like(ids)
        for row, lengths in enumerate(seq_lengths):
            used = sum(lengths)
            document[row, :used] = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths, dtype=torch.int64))
            document[row, used:] = torch.arange(length, length + length - used)  # Each a document of its own.
            positions[row, :used] = _positions(lengths, ids.dtype)
        labels = rows.tensors.get("labels")
        if labels is None:
            labels = torch.where(document < length, ids, -100)
        if self.mask_boundaries:
            begins = torch.zeros((count, length), dtype=torch.bool)
            begins[:, 1:] = document[:, 1:] != document[:, :-1]
            labels = labels.masked_fill(begins, -100)
        sees = (document[:, :, None] == document[:, None, :]).tril()[:, None]
        if self.dtype != torch.bool:
            sees = torch.zeros(sees.shape, dtype=self.dtype).masked_fill(~sees, torch.finfo(self.dtype).min)
        return {"input_ids": ids, "labels": labels, "position_ids": positions, "attention_mask": sees}
