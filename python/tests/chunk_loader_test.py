"""ChunkLoader is a DataLoader: for who asks what it is, and in the hands of who takes it apart. Its passes and their state."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from made_up_chunks import make_chunk_set
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

import lmemo
from lmemo.torch import ChunkDataset, ChunkLoader

LONG_ENOUGH = 60


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chunk_set(tmp_path_factory.mktemp("chunks") / "set")


def rows(batches: Iterable[Any]) -> list[list[int]]:
    return [row for batch in batches for row in batch["input_ids"].tolist()]


def rows_of_epoch(directory: Path, epoch: int, **options: Any) -> list[list[int]]:
    dataset = ChunkDataset(directory, seed=3, **options)
    dataset.set_epoch(epoch)
    return [row["input_ids"].tolist() for row in dataset]


def test_it_is_a_data_loader(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    for workers, drop_last in ((0, False), (2, False), (2, True)):
        loader = ChunkLoader(dataset, 8, num_workers=workers, drop_last=drop_last)
        assert isinstance(loader, DataLoader)
        assert (loader.dataset, loader.batch_size, loader.num_workers, loader.drop_last) == (dataset, 8, workers, drop_last)
        assert loader.collate_fn == dataset.collate and not loader.pin_memory
        assert list(loader.sampler) == list(range(len(dataset)))
        assert list(loader.batch_sampler) == list(DataLoader(dataset, 8, drop_last=drop_last).batch_sampler)
        # Apart, it is the same again: so accelerate makes its own of it.
        again = DataLoader(loader.dataset, batch_sampler=loader.batch_sampler, num_workers=workers, collate_fn=loader.collate_fn)
        expected = list(loader)
        assert rows(again) == rows(expected)
        assert len(loader) == len(expected) == len(again) == (len(dataset) // 8 if drop_last else -(-len(dataset) // 8))
    with pytest.raises(ValueError, match="should not be set"):
        loader.batch_size = 4


def test_the_order_is_the_data_sets(directory: Path) -> None:
    dataset = ChunkDataset(directory)
    options: list[dict[str, Any]] = [
        {"sampler": SequentialSampler(dataset)}, {"batch_sampler": [[1, 2]]}, {"shuffle": True}, {"sampler": RandomSampler(dataset)}, {"in_order": False}
    ]  # fmt: skip
    for one in options:
        with pytest.raises(lmemo.InvalidArgument, match="order of its data set"):
            ChunkLoader(dataset, 4, **one)
    assert len(ChunkLoader(dataset, 4, sampler=None, batch_sampler=None, shuffle=False, in_order=True)) == len(DataLoader(dataset, 4))


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "prefetch_factor": 3}, {"num_workers": 2, "persistent_workers": True}])
def test_passes_follow_one_another(directory: Path, options: dict[str, Any]) -> None:
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8, **options)
    batches = iter(loader)
    read = rows(next(batches) for _ in range(3))
    del batches
    read += rows(loader)  # It goes on where it was left.
    assert read == rows_of_epoch(directory, 0)
    batches = iter(loader)
    assert rows(next(batches) for _ in range(len(loader))) == rows_of_epoch(directory, 1)  # Who counts does not come for the end.
    assert rows(loader) == rows_of_epoch(directory, 2)


def test_workers_that_last(directory: Path) -> None:
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8, num_workers=2, persistent_workers=True, worker_init_fn=_note_worker)
    seen = []
    for epoch in range(2):
        assert rows(loader) == rows_of_epoch(directory, epoch)
        seen.append([worker.pid for worker in loader._iterator._workers])
    assert seen[0] == seen[1]


def test_an_evaluation_that_was_left_begins_anew(directory: Path) -> None:
    part: dict[str, Any] = {"split": "eval", "train_fraction": 0.7, "shuffle": False}
    loader = ChunkLoader(ChunkDataset(directory, seed=3, **part), 4)
    expected = rows_of_epoch(directory, 0, **part)
    for _ in range(2):
        assert rows([next(iter(loader))]) == expected[:4]
    assert rows(loader) == expected == rows(loader)


def test_epochs_by_name(directory: Path) -> None:
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8)
    for epoch in (0, 1, 1, 5):
        loader.set_epoch(epoch)
        assert rows(loader) == rows_of_epoch(directory, epoch)  # Once more, if it was read already.
    loader.dataset.set_epoch(6)  # As accelerate does.
    assert rows(loader) == rows_of_epoch(directory, 6)
    next(iter(loader))
    loader.dataset.set_epoch(9)
    assert rows(loader) == rows_of_epoch(directory, 9)


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_state_at_the_end_of_an_epoch(directory: Path, drop_last: bool) -> None:
    done = ChunkLoader(ChunkDataset(directory, seed=3), 8, drop_last=drop_last)
    rows(done)
    state, length = done.state_dict(), len(done)
    loader = ChunkLoader(ChunkDataset(directory), 8, drop_last=drop_last)
    loader.load_state_dict(state)
    assert len(loader) == len(list(loader)) == length and loader.dataset.epoch == 1
    named = ChunkLoader(ChunkDataset(directory), 8, drop_last=drop_last)
    named.load_state_dict(state)
    passes = []
    for epoch in range(named.dataset.epoch, 3):
        named.set_epoch(epoch)
        passes.append(len(list(named)))
    assert passes == [0, length, length]


def test_the_length_is_that_of_an_epoch(directory: Path) -> None:
    first = ChunkLoader(ChunkDataset(directory, seed=3), 8)
    batches = iter(first)
    read = rows(next(batches) for _ in range(7))
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8)
    length = len(loader)
    loader.load_state_dict(first.state_dict())
    assert len(loader) == length
    rest = list(loader)
    assert len(rest) == length - 7 and read + rows(rest) == rows_of_epoch(directory, 0)
    assert len(loader) == len(list(loader)) == length


def test_passes_at_once(directory: Path) -> None:
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8, num_workers=2)
    both = list(zip(loader, loader, strict=True))
    assert rows(one for one, _ in both) == rows(other for _, other in both) == rows_of_epoch(directory, 0)
    older = iter(loader)
    next(older)
    loader.set_epoch(7)
    with pytest.raises(lmemo.InvalidArgument, match="another epoch"):  # Never rows of the wrong epoch.
        next(older)
    assert rows(loader) == rows_of_epoch(directory, 7)


class Failing:
    """A collate function that fails now and then."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, samples: Any) -> Any:
        self.calls += 1
        if self.calls == 3:
            raise LookupError("nothing here")
        return samples.as_batch()


def test_an_error_leaves_the_state_before_the_batch(directory: Path) -> None:
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8, collate_fn=Failing())
    read = []
    with pytest.raises(LookupError):
        for batch in loader:
            read += rows([batch])
    assert read + rows(loader) == rows_of_epoch(directory, 0)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_options_of_torch_without_workers(directory: Path) -> None:
    assert rows(ChunkLoader(ChunkDataset(directory, seed=3), 8, pin_memory=True)) == rows_of_epoch(directory, 0)
    with pytest.raises(ValueError, match="persistent_workers"):
        ChunkLoader(ChunkDataset(directory), 8, persistent_workers=True)


def test_an_interrupt_ends_it(directory: Path) -> None:
    program = f"""
        from lmemo.torch import ChunkDataset, ChunkLoader
        loader = ChunkLoader(ChunkDataset({str(directory)!r}), 8, num_workers=2)
        print(len(next(iter(loader))), flush=True)
        while True:
            for batch in loader:
                pass
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "4\n"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=LONG_ENOUGH)[1]
    assert process.returncode == -signal.SIGINT


PREPARED = """
import json, sys
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from lmemo.torch import ChunkDataset, ChunkLoader

accelerator = Accelerator(cpu=True)
dataset = ChunkDataset(sys.argv[1], seed=3)
loader = accelerator.prepare(ChunkLoader(dataset, 4, num_workers=int(sys.argv[3])))
assert isinstance(loader, DataLoader) and loader.dataset is dataset
epochs = []
for _ in range(2):
    epochs.append([row for batch in loader for row in batch["input_ids"].tolist()])
    assert len(epochs[-1]) == 4 * len(loader) or accelerator.num_processes == 1
rest = [row for batch in accelerator.skip_first_batches(loader, 3) for row in batch["input_ids"].tolist()]
assert rest == [row for batch in list(loader)[3:] for row in batch["input_ids"].tolist()]
json.dump(epochs, open(f"{sys.argv[2]}/{accelerator.process_index}.json", "w"))
"""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ranks", [1, 2])
def test_accelerate_takes_it(directory: Path, tmp_path: Path, ranks: int, workers: int) -> None:
    import json

    script = tmp_path / "prepared.py"
    script.write_text(PREPARED)
    start = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [sys.executable, *start, str(script), str(directory), str(tmp_path), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(ranks)]
    for epoch in range(2):
        expected = rows_of_epoch(directory, epoch)
        batches = [expected[begin : begin + 4] for begin in range(0, len(expected), 4)]
        for rank in range(ranks):  # Batches in turns; accelerate fills up the last ones from the start.
            mine = [row for batch in batches[rank::ranks] for row in batch]
            assert found[rank][epoch][: len(mine)] == mine


def test_torch_is_asked_for_nothing_more(directory: Path) -> None:
    """Threads draw no random numbers: what a training draws does not depend on how it reads."""
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    next(iter(ChunkLoader(ChunkDataset(directory), 8, num_workers=2)))
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_every_option_of_torchs_data_loader_is_taken_or_refused_in_words(directory: Path) -> None:
    expected = rows_of_epoch(directory, 0)
    taken: dict[str, Any] = {
        "dataset": None, "batch_size": 8, "num_workers": 2, "drop_last": False, "collate_fn": None, "pin_memory": True, "timeout": LONG_ENOUGH,
        "worker_init_fn": _note_worker, "multiprocessing_context": "fork", "generator": torch.Generator(), "prefetch_factor": 3, "persistent_workers": True,
        "pin_memory_device": "",
    }  # fmt: skip
    refused: dict[str, Any] = {"shuffle": True, "sampler": range(3), "batch_sampler": [[1]], "in_order": False}
    assert {*taken, *refused} == set(inspect.signature(DataLoader.__init__).parameters) - {"self"}
    for name in taken.keys() - {"dataset", "num_workers", "batch_size"}:
        assert rows(ChunkLoader(ChunkDataset(directory, seed=3), 8, num_workers=2, **{name: taken[name]})) == expected, name
    for name in refused:
        with pytest.raises(lmemo.InvalidArgument, match="order of its data set"):
            ChunkLoader(ChunkDataset(directory), 8, **{name: refused[name]})
    for batch_size in (None, 0, -1, "8"):
        with pytest.raises(lmemo.InvalidArgument, match="expected a whole number of at least 1"):
            ChunkLoader(ChunkDataset(directory), batch_size)  # type: ignore[arg-type]
    for dataset in (directory, ChunkDataset(directory).iterable(), [1, 2]):
        with pytest.raises(lmemo.InvalidArgument, match="reads a ChunkDataset, not a"):
            ChunkLoader(dataset, 8)  # type: ignore[arg-type]


def _note_worker(worker: int) -> None:
    os.environ["LMEMO_TEST_WORKER"] = str(worker)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_options_that_speak_of_no_process_start_none(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(process: Any) -> None:
        raise AssertionError(f"{process} was started")

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", start)
    for options in ({}, {"persistent_workers": True, "prefetch_factor": 4}, {"pin_memory": True}, {"generator": torch.Generator()}):
        assert rows(ChunkLoader(ChunkDataset(directory, seed=3), 8, num_workers=2, **options)) == rows_of_epoch(directory, 0)
    with pytest.raises(AssertionError, match="was started"):
        list(ChunkLoader(ChunkDataset(directory), 8, num_workers=2, worker_init_fn=_note_worker))
