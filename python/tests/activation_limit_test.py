"""The limit holds at every moment of a run that writes ten times more than it allows, on disk and by the index."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from activation_fixtures import fresh_cache  # noqa: F401

import lmemo
from lmemo import activations
from lmemo.activations import CachedExtractor


def bytes_in(directory: Path) -> int:
    """Every file once, though it may be renamed meanwhile."""
    sizes: dict[int, int] = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                status = os.stat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


class Watcher(threading.Thread):
    """Looks at the directory all the time."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory, self.largest, self.looks = directory, 0, 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.001):
            self.largest = max(self.largest, bytes_in(self.directory))
            self.looks += 1

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()


class Letters:
    """As many tokens as letters; each state tells its letter and layer."""

    model_name, batch_size, layer_indices = "letters", 8, [0, 1, 2]

    def __init__(self) -> None:
        self.given: list[str] = []

    def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
        self.given += prompts
        states = torch.zeros(len(prompts), max(map(len, prompts)), 3 * 64)
        mask = torch.zeros(states.shape[:2], dtype=torch.int64)
        for row, prompt in enumerate(prompts):
            mask[row, : len(prompt)] = 1
            for layer in range(3):
                states[row, : len(prompt), layer * 64 : (layer + 1) * 64] = torch.tensor([ord(letter) + layer / 8 for letter in prompt]).unsqueeze(1)
        return states, mask


LIMIT = 4 << 20


def test_one_run_that_writes_ten_times_the_limit(fresh_cache: Path) -> None:
    activations.set_cache_limit(LIMIT / 2**30)
    letters = Letters()
    prompts = [f"{number:04} " + "abcdefghij" * 5 for number in range(1000)]
    assert sum(map(len, prompts)) * 3 * 64 * 4 > 10 * LIMIT
    with Watcher(fresh_cache) as watcher:
        result = CachedExtractor(letters).extract(prompts)
    assert watcher.looks > 10
    assert LIMIT // 3 < watcher.largest <= LIMIT
    assert activations.cache_info().total_size_bytes <= LIMIT
    # All of it comes back, though most was evicted before the end.
    assert result is not None and len(letters.given) == 1000
    expected, mask = Letters().extract(prompts)
    assert torch.equal(result[0], expected) and torch.equal(result[1], mask)
    # The latest are still there, the first are not.
    CachedExtractor(letters).extract(prompts[-20:])
    assert len(letters.given) == 1000
    assert activations.discover_cached("letters", prompts[0]) is None


def test_saves_by_hand_of_all_kinds(fresh_cache: Path) -> None:
    activations.set_cache_limit(LIMIT / 2**30)
    mask = torch.ones(1, 50, dtype=torch.int64)
    written = 0
    with Watcher(fresh_cache) as watcher:
        for number in range(400):
            prompt = f"prompt {number}"
            activations.save_prompt_activations("m", prompt, [0, 1], torch.randn(1, 50, 2 * 128), mask)
            activations.save_prompt_pooled_activations("m", prompt, [0, 1], torch.randn(1, 2 * 128), "mean")
            activations.save_prompt_logits("m", prompt, torch.randn(1, 50, 256), mask, positions="all")
            written += (50 * 2 * 128 + 2 * 128 + 50 * 256) * 4
            assert activations.cache_info().total_size_bytes <= LIMIT  # After each save.
    assert written > 9 * LIMIT
    assert LIMIT // 3 < watcher.largest <= LIMIT
    assert activations.discover_cached("m", "prompt 399") is not None


def test_a_lower_limit_takes_effect_at_once_and_none_lifts_it(fresh_cache: Path) -> None:
    for number in range(100):
        activations.save_prompt_activations("m", f"prompt {number}", [0], torch.randn(1, 50, 128), torch.ones(1, 50))
    assert activations.cache_info().total_size_bytes > 2 << 20
    activations.set_cache_limit(1 / 1024)  # 1 MiB.
    assert activations.cache_info().total_size_bytes <= 1 << 20 and bytes_in(fresh_cache) <= 1 << 20
    activations.set_cache_limit(None)
    for number in range(100):
        activations.save_prompt_activations("m", f"prompt {number}", [0], torch.randn(1, 50, 128), torch.ones(1, 50))
    assert activations.cache_info().models[0].num_prompts == 100


def test_what_is_larger_than_the_limit_is_returned_and_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    activations.set_cache_limit(50_000 / 2**30)
    letters = Letters()
    result = CachedExtractor(letters).extract(["x" * 200, "y"])
    assert result is not None and result[0].shape == (2, 200, 192)
    assert "are not stored: the limit is" in caplog.text
    assert activations.cache_info().total_size_bytes <= 50_000


def test_the_limit_is_of_the_backend_in_use(tmp_path: Path) -> None:
    """Switching the backend switches eviction too: what the first one holds is left alone."""
    for number in range(40):
        activations.save_prompt_activations("m", f"prompt {number}", [0], torch.randn(1, 50, 128), torch.ones(1, 50))
    activations.set_cache_backend(tmp_path / "second")
    activations.set_cache_limit(0.5 / 1024)
    for number in range(40):
        activations.save_prompt_activations("m", f"prompt {number}", [0], torch.randn(1, 50, 128), torch.ones(1, 50))
    activations.evict()
    assert 0 < activations.cache_info().total_size_bytes <= 512 << 10
    activations.set_cache_limit(None)
    activations.set_cache_backend(tmp_path / "store")
    assert activations.cache_info().models[0].num_prompts == 40


WRITER = """
import sys
import torch
torch.set_num_threads(1)
from lmemo import activations
activations.set_cache_backend(sys.argv[1])
activations.set_cache_limit(int(sys.argv[2]) / 2**30)
states = torch.randn(1, 50, 256)
print("ready", flush=True)
sys.stdin.readline()
for number in range(450):
    activations.save_prompt_activations(sys.argv[3], f"prompt {number}", [0, 1], states, torch.ones(1, 50))
"""


def test_processes_share_one_limit(fresh_cache: Path) -> None:
    """By what is published. On disk, a merge of small segments may stand beside them for a moment."""
    limit = 8 << 20
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(fresh_cache), str(limit), f"model {number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    largest = looks = 0
    while any(writer.poll() is None for writer in writers):
        with lmemo.Store(fresh_cache, read_only=True) as seen:
            kinds = seen.stats().kinds
        largest = max(largest, kinds["activations"].stored_bytes if "activations" in kinds else 0)
        looks += 1
    assert all(writer.returncode == 0 for writer in writers) and looks > 10
    assert 2 * 450 * 50 * 256 * 4 > 5 * limit
    assert limit // 3 < largest <= limit
    assert activations.cache_info().total_size_bytes <= limit and bytes_in(fresh_cache) <= limit


@pytest.mark.parametrize("limit_gib", [None, 1e-3])
def test_a_full_disk_costs_hits_and_not_the_extraction(fresh_cache: Path, limit_gib: float | None) -> None:
    """A file may not grow past 30 KB: to the store the disk is full, and nothing can be moved to make room either."""
    program = f"""
import logging, resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch
from activation_limit_test import Letters
from lmemo import activations
from lmemo.activations import CachedExtractor
messages = []
logging.getLogger("lmemo.activations").addFilter(lambda record: messages.append(record.getMessage()) or False)
activations.set_cache_backend({str(fresh_cache)!r})
activations.set_cache_limit({limit_gib})
before = [f"before {{number}}" for number in range(40)]
CachedExtractor(Letters()).extract(before, cache_only=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
prompts = before[:5] + [f"{{number}} now the disk is full" for number in range(200)]
for _ in range(2):
    states, mask = CachedExtractor(Letters()).extract(prompts)
    expected, expected_mask = Letters().extract(prompts)
    assert torch.equal(states, expected) and torch.equal(mask, expected_mask)
assert any("not stored" in message for message in messages), messages
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
