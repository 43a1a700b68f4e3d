"""lmemo.torch: every row once per epoch, whatever the ranks and workers, before and after a resume, before and after growth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from made_up_chunks import make_chunk_set
from torch.utils.data import DataLoader

import lmemo
from lmemo.torch import ChunkDataset, ChunkLoader, TrainingRows


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chunk_set(tmp_path_factory.mktemp("chunks") / "set")


def key(ids: torch.Tensor) -> bytes:
    return ids.to(torch.int64).numpy().tobytes()


def rows_of_set(directory: Path) -> Counter[bytes]:
    chunks = lmemo.ChunkSet(directory)
    return Counter(row.tobytes() for row in chunks.batch(range(len(chunks))).input_ids)


def rows_of_batch(batch: Any) -> list[bytes]:
    return [key(row) for row in batch["input_ids"]]


# --------------------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("mask_boundaries", [False, True])
def test_columns(directory: Path, dtype: torch.dtype, mask_boundaries: bool) -> None:
    chunks = lmemo.ChunkSet(directory)
    dataset = ChunkDataset(chunks, shuffle=False, dtype=dtype, pad_id=3, mask_boundaries=mask_boundaries)
    assert len(dataset) == len(chunks)
    for index in range(0, len(chunks), 7):
        sample, (tokens, lengths) = dataset[index], chunks[index]
        used = len(tokens)
        starts = numpy.cumsum([0, *lengths])[:-1]
        assert sample["input_ids"].dtype == dtype and sample["seq_lengths"] == lengths
        assert sample["input_ids"].tolist() == tokens.tolist() + [3] * (64 - used)
        labels = tokens.tolist() + [-100] * (64 - used)
        for start in starts[1:] if mask_boundaries else []:
            labels[start] = -100
        assert sample["labels"].tolist() == labels
        positions = [place for length in lengths for place in range(length)]
        assert sample["position_ids"].tolist() == positions + [0] * (64 - used)


def test_torchs_own_collate_function_works(directory: Path) -> None:
    batch = next(iter(DataLoader(ChunkDataset(directory, shuffle=False), batch_size=5)))
    assert batch["input_ids"].shape == (5, 64) and [len(batch["seq_lengths"]), type(batch["seq_lengths"])] == [5, list]


def test_what_cannot_be_is_refused(directory: Path) -> None:
    for wrong in ({"rank": 2, "world_size": 2}, {"rank": 0}, {"tail": "cut"}, {"shuffle": "well"}, {"columns": ["ids"]}, {"split": "test"}):
        with pytest.raises(lmemo.InvalidArgument):
            ChunkDataset(directory, **wrong)


# ----------------------------------------------------------------------------------------------------------- order


@pytest.mark.parametrize("shuffle", [True, "exact", False])
def test_an_epoch_has_every_row_once(directory: Path, shuffle: bool | str) -> None:
    dataset = ChunkDataset(directory, seed=3, shuffle=shuffle)
    first = [key(row["input_ids"]) for row in dataset]
    assert Counter(first) == rows_of_set(directory)
    assert first == [key(dataset[index]["input_ids"]) for index in range(len(dataset))]
    dataset.set_epoch(1)
    second = [key(row["input_ids"]) for row in dataset]
    assert Counter(second) == Counter(first) and (second != first) == bool(shuffle)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_tails(directory: Path, world_size: int) -> None:
    whole = rows_of_set(directory)
    for tail in ("keep", "drop", "pad"):
        ranks = [ChunkDataset(directory, rank=rank, world_size=world_size, tail=tail) for rank in range(world_size)]
        read = Counter(key(row["input_ids"]) for rank in ranks for row in rank)
        if tail == "keep":
            assert read == whole
        else:
            assert len({len(rank) for rank in ranks}) == 1
        if tail == "drop":
            assert read <= whole and whole.total() - read.total() == whole.total() % world_size
        if tail == "pad":
            assert read >= whole and read.total() - whole.total() == -whole.total() % world_size


def test_training_and_evaluation_share_nothing(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 3)
    parts = {}
    for _ in range(2):
        train, held_out = (ChunkDataset(directory, split=split, train_fraction=0.9) for split in ("train", "eval"))
        assert len(held_out) == len(lmemo.ChunkSet(directory)) // 10
        rows = {name: Counter(key(row["input_ids"]) for row in part) for name, part in (("train", train), ("eval", held_out))}
        assert rows["train"] + rows["eval"] == rows_of_set(directory)
        for name, before in parts.items():
            assert before <= rows[name]  # Growth moves no row from one to the other.
        parts = rows
        make_chunk_set(directory, 2)


# ---------------------------------------------------------------------------------------------------------- resume


def read_some(directory: Path, state: Any, ranks: int, workers: int, batches: int | None, **options: Any) -> tuple[list[bytes], dict[str, Any]]:
    """What all ranks read in so many batches, in the order of the ranks' turns, and the state afterwards."""
    read: list[list[bytes]] = []
    states = []
    for rank in range(ranks):
        loader = ChunkLoader(ChunkDataset(directory, seed=11, rank=rank, world_size=ranks), batch_size=4, num_workers=workers, **options)
        if state is not None:
            loader.load_state_dict(json.loads(json.dumps(state)))
        mine: list[bytes] = []
        for number, batch in enumerate(loader):
            mine += rows_of_batch(batch)
            if number + 1 == batches:
                states.append(loader.state_dict())
                break
        else:
            states.append(loader.state_dict())
        read.append(mine)
    if batches is not None:
        assert all(one == states[0] for one in states)
    longest = max(len(mine) for mine in read)
    return [mine[turn] for turn in range(longest) for mine in read if turn < len(mine)], states[0]


@pytest.mark.parametrize(
    "legs",
    [
        [(1, 0, 7), (2, 0, 5), (4, 0, None)],
        [(4, 0, 3), (2, 0, 4), (1, 0, None)],
        [(1, 0, 9), (1, 2, None)],
        [(1, 2, 9), (1, 0, None)],
        [(2, 2, 3), (3, 1, 2), (1, 2, None)],
        [(1, 0, 7), (1, 0, 8), (1, 0, None)],
    ],
)
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_resume_with_other_ranks_and_workers(directory: Path, legs: list[tuple[int, int, int | None]], kind: str) -> None:
    uninterrupted, _ = read_some(directory, None, 1, 0, None)
    state, read = None, []
    for ranks, workers, batches in legs:
        options = {"prefetch_factor": 3} if workers and kind == "processes" else {}
        part, state = read_some(directory, state, ranks, workers, batches, **options)
        read += part
    assert Counter(read) == Counter(uninterrupted) == rows_of_set(directory)
    # Dealt in turns, the ranks' rows are the one order: also in order, not only as a set.
    assert read == uninterrupted


def test_threads_decode_each_block_once(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    loader = ChunkLoader(dataset, 4, num_workers=2)
    for _ in range(2):  # Two epochs; all blocks stay in memory.
        assert Counter(row for batch in loader for row in rows_of_batch(batch)) == rows_of_set(directory)
    assert dataset._reader is not None
    counters = dataset._reader[1].counters()
    assert counters["blocks_decoded"] == dataset.chunk_set._native.blocks
    assert counters["blocks_decoded_ahead"] <= counters["blocks_decoded"]


def test_the_same_ranks_go_on_in_the_same_order(directory: Path) -> None:
    for rank in range(2):
        whole = [rows_of_batch(batch) for batch in ChunkLoader(ChunkDataset(directory, seed=5, rank=rank, world_size=2), 4)]
        loader = ChunkLoader(ChunkDataset(directory, seed=5, rank=rank, world_size=2), 4)
        batches = iter(loader)
        first = [rows_of_batch(next(batches)) for _ in range(6)]
        other = ChunkLoader(ChunkDataset(directory, seed=99, rank=rank, world_size=2), 4, num_workers=2)
        other.load_state_dict(loader.state_dict())
        assert first + [rows_of_batch(batch) for batch in other] == whole


def test_plain_data_loaders_resume(directory: Path) -> None:
    for workers in (0, 2):
        dataset = ChunkDataset(directory, seed=2)
        whole = [rows_of_batch(batch) for batch in DataLoader(dataset, 4, num_workers=workers, collate_fn=dataset.collate)]
        assert Counter(row for rows in whole for row in rows) == rows_of_set(directory)
        again = ChunkDataset(directory, seed=2)
        batches = iter(DataLoader(again, 4, num_workers=workers, collate_fn=again.collate))
        first = [rows_of_batch(next(batches)) for _ in range(5)]
        if workers:
            with pytest.raises(lmemo.InvalidArgument, match="ChunkLoader"):
                again.state_dict()
        state = again.state_dict(rows_consumed=20) if workers else again.state_dict()
        other = ChunkDataset(directory)
        other.load_state_dict(state)
        assert first + [rows_of_batch(batch) for batch in DataLoader(other, 4, collate_fn=other.collate)] == whole


def test_spawned_and_lasting_workers(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=4)
    loader: DataLoader[Any] = DataLoader(
        dataset, 8, num_workers=1, collate_fn=dataset.collate, multiprocessing_context="spawn", persistent_workers=True
    )
    for epoch in (0, 1):
        dataset.set_epoch(epoch)  # Workers that live on hear of it.
        read = [row for batch in loader for row in rows_of_batch(batch)]
        plain = ChunkDataset(directory, seed=4)
        plain.set_epoch(epoch)
        assert read == [key(row["input_ids"]) for row in plain]


def test_the_stream_form(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=6)
    whole = [key(row["input_ids"]) for row in dataset]
    for workers in (0, 2):
        batches = DataLoader(dataset.iterable(batch_size=4), batch_size=None, num_workers=workers)
        assert [row for batch in batches for row in rows_of_batch(batch)] == whole
        rows = DataLoader(dataset.iterable(), batch_size=8, num_workers=workers)
        assert Counter(row for batch in rows for row in rows_of_batch(batch)) == Counter(whole)


def test_epochs_follow_one_another(directory: Path) -> None:
    loader = ChunkLoader(ChunkDataset(directory, seed=8), 16)
    epochs = [[row for batch in loader for row in rows_of_batch(batch)] for _ in range(3)]
    assert all(Counter(epoch) == rows_of_set(directory) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert loader.dataset.epoch == 2
    end = loader.state_dict()
    loader.load_state_dict(end)
    assert next(iter(loader)) is not None and loader.dataset.epoch == 3


# ---------------------------------------------------------------------------------------------------------- growth


def test_growth_within_an_epoch(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2)
    read: list[bytes] = []
    state = None
    for ranks, workers, batches in [(1, 0, 5), (2, 0, 4), (1, 0, None)]:
        part, state = read_some(directory, state, ranks, workers, batches)
        read += part
        if batches is not None:
            make_chunk_set(directory, 1)
    assert Counter(read) == rows_of_set(directory)
    assert state is not None and [chunks for chunks, _ in state["growths"]] == [2, 3]


def test_the_state_of_another_set_is_refused(directory: Path, tmp_path: Path) -> None:
    other = make_chunk_set(tmp_path / "other", 4, 77)
    state = ChunkDataset(other).state_dict()
    with pytest.raises(lmemo.Incompatible, match="neither that set nor a continuation"):
        ChunkDataset(directory).load_state_dict(state)
    with pytest.raises(lmemo.Incompatible, match="version"):
        ChunkDataset(directory).load_state_dict({**state, "version": 9})


def test_a_whole_training_as_one_row_of_rows(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2)
    rows = TrainingRows(ChunkDataset(directory, seed=1), epochs=2)
    count = len(lmemo.ChunkSet(directory))
    assert len(rows) == 2 * count
    numbers = rows.rows_of(range(len(rows)))
    assert sorted(numbers) == sorted([*range(count)] * 2)
    assert sorted(numbers[:count]) == [*range(count)]
    seen = numbers[: count + 10]
    state = rows.state_at(count + 10)
    assert (state["epoch"], state["consumed"]) == (1, 10)

    make_chunk_set(directory, 1)
    later = TrainingRows(ChunkDataset(directory), epochs=2)
    later.go_on_at(1000, state)
    rest = later.rows_of(range(1000, len(later)))
    assert sorted(seen[count:] + rest) == [*range(len(lmemo.ChunkSet(directory)))]


# ---------------------------------------------------------------------------------------------------- many processes

RANK = """
import json, sys, torch
import torch.distributed as dist
from lmemo.torch import ChunkDataset, ChunkLoader
dist.init_process_group("gloo")
dataset = ChunkDataset(sys.argv[1], seed=3, tail="drop")
assert dataset.rank_and_world == (dist.get_rank(), dist.get_world_size())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1))
loader = ChunkLoader(dataset, 4, num_workers=int(sys.argv[3]))
if len(sys.argv) > 4:
    loader.load_state_dict(json.load(open(sys.argv[4])))
rows = []
for number, batch in enumerate(loader):
    model(batch["input_ids"].float()).sum().backward()
    rows += batch["input_ids"].tolist()
    if number + 1 == 3:
        break
json.dump({"rows": rows, "state": loader.state_dict()}, open(f"{sys.argv[2]}/{dist.get_rank()}.json", "w"))
dist.destroy_process_group()
"""


def torchrun(script: Path, ranks: int, *arguments: str) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]


def test_ddp_with_torchrun(directory: Path, tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    one = tmp_path / "one"
    one.mkdir()
    torchrun(script, 2, str(directory), str(one), "1")
    found = [json.loads((one / f"{rank}.json").read_text()) for rank in range(2)]
    assert found[0]["state"] == found[1]["state"] and found[0]["state"]["consumed"] == 24
    expected = ChunkDataset(directory, seed=3)
    order = [expected[index]["input_ids"].tolist() for index in range(24)]
    assert [found[rank]["rows"][turn] for turn in range(12) for rank in range(2)] == order


@pytest.mark.parametrize(
    "damage", [{"consumed": -1}, {"consumed": 10**9}, {"epoch": -1}, {"growths": [[99, 5]]}, {"growths": [[1, 5]]}, {"order": "zzz"}, {"lanes": 0}, "consumed"]
)
def test_a_damaged_state_is_refused_and_changes_nothing(directory: Path, damage: dict[str, Any] | str) -> None:
    dataset = ChunkDataset(directory, seed=3)
    state, expected = dataset.state_dict(), dataset[0]["input_ids"].tolist()
    broken = {name: value for name, value in state.items() if name != damage} if isinstance(damage, str) else {**state, **damage}
    with pytest.raises(lmemo.Incompatible, match="state of a reader"):
        dataset.load_state_dict(broken)
    assert dataset.state_dict() == {**state, "consumed": 1} and dataset[0]["input_ids"].tolist() == expected


@pytest.mark.parametrize("options", [{"columns": ()}, {"threads": -1}, {"max_bytes": -1}, {"pad_id": 1 << 40, "dtype": torch.int32}])
def test_numbers_that_cannot_be_are_refused_in_words(directory: Path, options: dict[str, Any]) -> None:
    with pytest.raises(lmemo.InvalidArgument, match="at least one column"):
        ChunkDataset(directory, **options)
    with pytest.raises(lmemo.InvalidArgument, match="counted from 0"):
        ChunkDataset(directory).set_epoch(-1)
