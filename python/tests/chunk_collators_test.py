"""Padding-free batches and block-diagonal masks: a document is scored as if it stood alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from made_up_chunks import make_chunk_set
from transformers import LlamaConfig, LlamaForCausalLM

import lmemo
from lmemo.torch import BlockDiagonalCollator, ChunkDataset, ChunkLoader, PaddingFreeCollator, RowSamples


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chunk_set(tmp_path_factory.mktemp("chunks") / "set", 1)


def samples_of(directory: Path, **options: object) -> RowSamples:
    dataset = ChunkDataset(directory, shuffle=False, **options)  # type: ignore[arg-type]
    return dataset.__getitems__([*range(6), len(dataset) - 1])


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=500, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        max_position_embeddings=64, attn_implementation="eager",
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("mask_boundaries", [False, True])
def test_padding_free(directory: Path, as_list: bool, mask_boundaries: bool) -> None:
    samples = samples_of(directory)
    batch = PaddingFreeCollator(mask_boundaries=mask_boundaries)(list(samples) if as_list else samples)
    rows = lmemo.ChunkSet(directory)
    wanted = [rows[index] for index in [*range(6), len(rows) - 1]]
    assert batch["input_ids"].tolist() == [[int(token) for row in wanted for token in row.tokens]]
    lengths = [length for row in wanted for length in row.lengths]
    assert batch["cu_seqlens"].dtype == torch.int32 and batch["cu_seqlens"].diff().tolist() == lengths and batch["cu_seqlens"][0] == 0
    assert batch["max_seqlen"] == max(lengths)
    assert batch["position_ids"].tolist() == [[place for length in lengths for place in range(length)]]
    masked = (batch["labels"] == -100).nonzero()[:, 1].tolist()
    row_starts = [sum(len(row.tokens) for row in wanted[:index]) for index in range(len(wanted))]
    assert masked == (batch["cu_seqlens"][:-1].tolist() if mask_boundaries else row_starts)
    kept = batch["labels"] != -100
    assert torch.equal(batch["labels"][kept], batch["input_ids"][kept])


def test_names_that_transformers_models_take(directory: Path) -> None:
    batch = PaddingFreeCollator(for_transformers=True)(samples_of(directory))
    assert set(batch) == {"input_ids", "labels", "position_ids", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"}


def test_block_diagonal_masks(directory: Path) -> None:
    samples = samples_of(directory)
    batch = BlockDiagonalCollator()(samples)
    assert samples.seq_lengths is not None
    for row, lengths in enumerate(samples.seq_lengths):
        expected = torch.zeros((64, 64), dtype=torch.bool)
        start = 0
        for length in lengths:
            expected[start : start + length, start : start + length] = torch.ones((length, length), dtype=torch.bool).tril()
            start += length
        for place in range(start, 64):
            expected[place, place] = True
        assert torch.equal(batch["attention_mask"][row, 0], expected)
    assert torch.equal(batch["position_ids"], samples.tensors["position_ids"])
    added = BlockDiagonalCollator(dtype=torch.float32)(samples)["attention_mask"]
    assert torch.equal(added == 0, batch["attention_mask"]) and added.min() == torch.finfo(torch.float32).min
    masked = BlockDiagonalCollator(mask_boundaries=True)(samples)["labels"]
    assert torch.equal(masked, samples_of(directory, mask_boundaries=True).tensors["labels"])


def test_a_document_is_scored_as_if_it_stood_alone(directory: Path, model: LlamaForCausalLM) -> None:
    samples = samples_of(directory)
    assert samples.seq_lengths is not None
    with torch.no_grad():
        block = BlockDiagonalCollator(dtype=torch.float32, mask_boundaries=True)(samples)
        together = model(**block)
        # The line without padding, with the mask that varlen attention would make of cu_seqlens.
        line = PaddingFreeCollator(mask_boundaries=True)(samples)
        ends = line.pop("cu_seqlens")
        line.pop("max_seqlen")
        document = torch.bucketize(torch.arange(int(ends[-1])), ends[1:], right=True)
        sees = (document[:, None] == document[None, :]).tril()
        in_line = model(**line, attention_mask=torch.zeros(sees.shape).masked_fill(~sees, torch.finfo(torch.float32).min)[None, None])
        assert torch.allclose(together.loss, in_line.loss, atol=1e-5)
        for row, lengths in enumerate(samples.seq_lengths):
            start = 0
            for length in lengths:
                alone = model(input_ids=samples.tensors["input_ids"][row : row + 1, start : start + length]).logits[0]
                assert torch.allclose(together.logits[row, start : start + length], alone, atol=1e-4)
                start += length


def test_collators_run_in_loaders_and_workers(directory: Path) -> None:
    for workers in (0, 1):
        loader = ChunkLoader(ChunkDataset(directory), 4, num_workers=workers, collate_fn=PaddingFreeCollator())
        tokens = sum(batch["input_ids"].shape[1] for batch in loader)
        assert tokens == lmemo.ChunkSet(directory).info()["total_tokens"]


def test_lengths_are_needed(directory: Path) -> None:
    with pytest.raises(lmemo.InvalidArgument, match="seq_lengths"):
        PaddingFreeCollator()(samples_of(directory, columns=("input_ids",)))
