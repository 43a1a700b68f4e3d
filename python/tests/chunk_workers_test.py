"""DataLoader's workers name rows, and the process that uses them decodes: the same batches, whoever looks into them and wherever."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from made_up_chunks import make_chunk_set
from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader, Dataset, Subset, default_collate
from torch.utils.data._utils import worker as torch_worker

import lmemo
from lmemo._torch_late import LateBatch
from lmemo.torch import ChunkDataset, ChunkLoader


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chunk_set(tmp_path_factory.mktemp("chunks") / "set")


@pytest.fixture
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Turns this process into a DataLoader's worker, as far as data sets see it, and back."""

    def become(is_worker: bool) -> None:
        monkeypatch.setattr(torch_worker, "_worker_info", torch_worker.WorkerInfo(id=0, num_workers=1, seed=0, dataset=None) if is_worker else None)

    return become


def plain(batch: Any) -> Any:
    assert type(batch) is dict
    return {name: column.tolist() if isinstance(column, torch.Tensor) else column for name, column in batch.items()}


def batches_of(dataset: Dataset[Any], **options: Any) -> list[Any]:
    return [plain(batch) for batch in DataLoader(dataset, 8, **options)]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_batches_are_those_of_one_process(directory: Path, start: str) -> None:
    dataset = ChunkDataset(directory, seed=3, mask_boundaries=True, dtype=torch.int32)
    alone = batches_of(dataset, collate_fn=dataset.collate)
    workers: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": start}
    assert batches_of(dataset, collate_fn=dataset.collate, **workers) == alone
    assert batches_of(dataset, **workers) == alone  # By torch's own collate function.
    loader = ChunkLoader(dataset, 8, **workers)
    assert [plain(batch) for batch in loader] == alone


def test_rows_in_any_order_of_any_part(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    some = Subset(dataset, [5, 2, 40, 41, 42, 7, 7])
    assert batches_of(some, num_workers=1, collate_fn=dataset.collate) == batches_of(some, collate_fn=dataset.collate)
    padded = ChunkDataset(directory, rank=2, world_size=7, tail="pad")
    assert batches_of(padded, num_workers=1) == batches_of(padded)


def test_only_the_process_that_uses_them_decodes(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    for collate in (dataset.collate, None):
        rows = sum(len(batch["input_ids"]) for batch in DataLoader(dataset, 8, num_workers=2, collate_fn=collate))
        assert rows == len(dataset) and dataset._reader is not None
        counters = dataset._reader[1].counters()
        assert counters["blocks_decoded"] == dataset.chunk_set._native.blocks and counters["blocks_found"] > 0
        dataset._reader = None


def looks_into_rows(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    assert all(type(sample) is dict for sample in samples) and type(samples[0]) is dict
    batch = default_collate(samples)
    assert type(batch) is dict
    batch["rows"] = samples[:2]
    return batch


class Changing:
    """A collate function that goes on with the batch that the data set makes."""

    def __init__(self, dataset: ChunkDataset) -> None:
        self.dataset = dataset

    def __call__(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        batch = self.dataset.collate(samples)
        batch["mask"] = batch["labels"] != -100
        return batch


def test_a_collate_function_of_ones_own_looks_into_them(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    for number, batch in enumerate(DataLoader(dataset, 8, num_workers=2, collate_fn=looks_into_rows)):
        alone = dataset.__getitems__(range(8 * number, min(8 * number + 8, len(dataset))))
        assert [plain(row) for row in batch.pop("rows")] == [plain(row) for row in alone[:2]]
        assert plain(batch) == plain(alone.as_batch())
    for workers in (0, 2):
        for batch in DataLoader(dataset, 8, num_workers=workers, collate_fn=Changing(dataset)):
            assert type(batch) is dict and torch.equal(batch["mask"], batch["labels"] != -100)


class TwoWays(Dataset[Any]):
    """A data set around ours that asks row by row, and adds something."""

    def __init__(self, dataset: ChunkDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.dataset[index]
        assert type(row) is dict
        return {**row, "index": index}


def test_a_data_set_around_it_gets_plain_rows(directory: Path) -> None:
    around = TwoWays(ChunkDataset(directory, seed=3))
    assert batches_of(around, num_workers=1) == batches_of(around)


def test_a_state_loaded_meanwhile_does_not_change_what_is_under_way(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    alone = batches_of(dataset)
    loader = DataLoader(dataset, 8, num_workers=1, collate_fn=dataset.collate, persistent_workers=True)
    under_way = iter(loader)
    read = [plain(next(under_way)) for _ in range(2)]
    dataset.load_state_dict({**dataset.state_dict(rows_consumed=0), "seed": 99})
    read += [plain(next(under_way)) for _ in range(2)]  # The worker had named these already.
    assert read == alone[:4]


def damage(directory: Path) -> None:
    for file in (directory / "chunks").iterdir():
        times, data = file.stat(), bytearray(file.read_bytes())
        for place in range(200, len(data) - 2000, 200):
            data[place] ^= 4
        file.write_bytes(data)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_damage_is_an_error_of_its_own_kind(tmp_path: Path, as_a_worker: Callable[[bool], None]) -> None:
    dataset = ChunkDataset(make_chunk_set(tmp_path / "set", 1, 3000))
    damage(tmp_path / "set")
    for collate in (dataset.collate, Changing(dataset)):  # Seen by the main process, and by the worker.
        with pytest.raises(lmemo.Corruption, match="checksum"):
            for _ in DataLoader(dataset, 8, num_workers=1, collate_fn=collate):
                pass
    as_a_worker(True)
    sent = pickle.dumps(LateBatch(dataset.__getitems__(range(len(dataset)))))
    as_a_worker(False)
    with pytest.raises(lmemo.Corruption):
        pickle.loads(sent)
    arrived: list[Any] = []  # As in the thread that pins memory, which an exception would end.
    thread = threading.Thread(target=lambda: arrived.append(pickle.loads(sent)))
    thread.start()
    thread.join()
    assert isinstance(arrived[0], ExceptionWrapper)
    with pytest.raises(lmemo.Corruption):
        arrived[0].reraise()


def test_copies_are_told_apart(directory: Path, as_a_worker: Callable[[bool], None]) -> None:
    dataset = ChunkDataset(directory, columns=("input_ids",))
    other = pickle.loads(pickle.dumps(dataset))
    other.columns = ("labels",)
    as_a_worker(True)
    sent = [pickle.dumps(LateBatch(one.__getitems__(range(4)))) for one in (dataset, other)]
    as_a_worker(False)
    assert [list(pickle.loads(one)) for one in sent] == [["input_ids"], ["labels"]]
    del dataset
    with pytest.raises(lmemo.InvalidArgument, match="does not have its ChunkDataset"):
        pickle.loads(sent[0])


def test_a_set_that_was_changed_under_its_rows_is_refused(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 3)
    missing = sorted((directory / "chunks").iterdir())[1]
    kept = missing.rename(tmp_path / "kept")
    sent = pickle.dumps(ChunkDataset(directory, allow_gaps=True))
    assert len(pickle.loads(sent)) > 0
    kept.rename(missing)  # The gap is filled: other rows have the same numbers.
    with pytest.raises(lmemo.Incompatible, match="was changed since"):
        pickle.loads(sent)
    make_chunk_set(directory, 1)  # Growth alone changes no number.
    sent = pickle.dumps(ChunkDataset(directory))
    make_chunk_set(directory, 1)
    assert len(pickle.loads(sent)) > 0


def test_a_child_forked_in_the_middle_reads_by_itself_and_ends(directory: Path) -> None:
    program = f"""
        import os, sys
        from lmemo.torch import ChunkDataset

        dataset = ChunkDataset({str(directory)!r}, seed=3, threads=2)
        alone = [row["input_ids"].tolist() for row in dataset]
        rows = iter(dataset)
        begun = [next(rows)["input_ids"].tolist() for _ in range(70)]
        for use in (True, False):  # A child that reads, and one that only ends: neither has the parent's threads or blocks.
            child = os.fork()
            if child == 0:
                if use:
                    assert [row["input_ids"].tolist() for row in dataset] == alone
                dataset = rows = None
                sys.exit(0)  # With all destructors.
            assert os.waitpid(child, 0)[1] == 0
        assert begun + [row["input_ids"].tolist() for row in rows] == alone
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)


def test_nothing_is_decoded_twice_when_windows_fill_the_memory(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2, 110_000, max_tokens=200, length=512, vocabulary=50_000)
    for threads in (0, 1, 2):
        dataset = ChunkDataset(directory, seed=3, columns=("input_ids",), threads=threads)
        blocks = dataset.chunk_set._native.blocks
        assert blocks * dataset.places.block_rows > 2 * dataset.places.window_rows
        rows = sum(len(batch["input_ids"]) for batch in ChunkLoader(dataset, 64))
        assert rows == len(dataset) and dataset._reader is not None
        assert dataset._reader[1].counters()["blocks_decoded"] == blocks
