"""Power cuts: a store on a real ext4, on a disk that recorded every write; cut at random points, mounted again, checked.

What is shown: for every cut and every key, the store then holds what the last flush that had returned before the cut made
durable, or something that was put or erased later; no wrong byte; no damage in any published segment; clean after
repair. Half of the cuts are a prefix of the stream of writes; the others lose a random half of the sectors that
were written after the last flush of the device. Writers, a merging and a compacting process run until the end.
What is not shown: other file systems, and disks that lie about their flushes.
"""

from __future__ import annotations

import os
import random
import selectors
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from recording_disk import RecordingDisk, run, why_not  # noqa: E402

IMAGE_BYTES = 192 << 20
WRITERS, THREADS, KEYS, ROUND = 2, 3, 60, 1
STEP_RETURNED = struct.Struct("<3I")
PROGRAMS = Path(os.environ.get("LMEMO_BUILD_DIR", Path(__file__).parents[2] / "build/dev")) / "tests/programs"
SCALE = int(os.environ.get("LMEMO_TEST_SCALE", "1000")) / 1000


class Steps:
    """What one thread of a writer said: for each step whether it erased something, and where the log was by then."""

    def __init__(self) -> None:
        self.erased: list[int] = []
        self.positions: list[int] = []

    def acknowledged_before(self, position: int) -> int:
        return sum(1 for heard in self.positions if heard <= position)


def record(disk: RecordingDisk, store: Path, seconds: float) -> dict[tuple[int, int], Steps]:
    """Lets writers and a compactor work, and kills them. Returns what the writers said."""
    steps = {(writer, thread): Steps() for writer in range(WRITERS) for thread in range(THREADS)}
    writers = [
        subprocess.Popen([PROGRAMS / "mixed_writer", store, str(n), str(THREADS), str(KEYS), str(ROUND)], stdout=subprocess.PIPE)
        for n in range(WRITERS)
    ]
    compactor = subprocess.Popen([PROGRAMS / "maintainer", store, "compact"])
    try:
        selector = selectors.DefaultSelector()
        unread = [b""] * WRITERS
        for number, writer in enumerate(writers):
            assert writer.stdout is not None
            selector.register(writer.stdout, selectors.EVENT_READ, number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in selector.select(timeout=0.1):
                number = key.data
                unread[number] += os.read(key.fd, 1 << 16)
                # Heard now, so everything it relies on is in the log by now.
                position = len(disk.log)
                whole = len(unread[number]) // STEP_RETURNED.size * STEP_RETURNED.size
                for thread, index, did_erase in STEP_RETURNED.iter_unpack(unread[number][:whole]):
                    thread_steps = steps[number, thread]
                    assert index == len(thread_steps.erased)
                    thread_steps.erased.append(did_erase)
                    thread_steps.positions.append(position)
                unread[number] = unread[number][whole:]
        for process in [*writers, compactor]:
            assert process.poll() is None, "it ended by itself: it met an error"
    finally:
        for process in [*writers, compactor]:
            process.kill()
            process.wait()
    return steps


def check(image: bytearray, steps: dict[tuple[int, int], Steps], position: int, tmp_path: Path) -> tuple[int, int]:
    """Mounts what the cut left, and has the checker look at it. Returns how many entries it checked."""
    file, mount_point = tmp_path / "cut.img", tmp_path / "cut"
    file.write_bytes(image)
    mount_point.mkdir(exist_ok=True)
    run("mount", "-t", "ext4", "-o", "loop", str(file), str(mount_point))
    try:
        lines = [
            f"{writer} {thread} {said.acknowledged_before(position)} {''.join(map(str, said.erased)) or '-'}"
            for (writer, thread), said in steps.items()
        ]
        checked = subprocess.run(
            [PROGRAMS / "power_cut_checker", mount_point / "store", str(KEYS), str(ROUND)],
            input="\n".join(lines), capture_output=True, text=True,
        )
    finally:
        run("umount", str(mount_point))
    assert checked.returncode == 0, f"cut after {position} writes: {checked.stderr}"
    words = checked.stdout.split()
    return int(words[1]), int(words[4])


@pytest.mark.parametrize("mode", ["ordered", "writeback"])
def test_nothing_acknowledged_is_lost_when_the_power_goes(mode: str, tmp_path: Path) -> None:
    if reason := why_not():
        print(f"\npower_cut_test: not run: {reason}")
        return
    seed = int(os.environ.get("LMEMO_TEST_SEED", time.time_ns() % 2**32))
    dice = random.Random(seed)
    blank = tmp_path / "blank.img"
    with blank.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-J", "size=8", str(blank))
    disk = RecordingDisk(blank.read_bytes(), tmp_path / "recorder")
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    try:
        run("mount", "-t", "ext4", "-o", f"data={mode},commit=1", disk.device, str(mount_point))
        try:
            steps = record(disk, mount_point / "store", seconds=max(3.0, 20 * SCALE))
            writes = len(disk.log)
        finally:
            run("umount", str(mount_point))
    finally:
        disk.close()

    flushes = sum(1 for entry in disk.log[:writes] if entry is None)
    cuts = max(4, int(60 * SCALE))
    flushed = others = 0
    for cut in range(cuts):
        position = dice.randrange(1, writes + 1)
        image = disk.image_after(position, dice, keeps_order=cut % 2 == 0)
        more_flushed, more_others = check(image, steps, position, tmp_path)
        flushed, others = flushed + more_flushed, others + more_others
    print(
        f"\npower cuts, data={mode}, LMEMO_TEST_SEED={seed}: {cuts} cuts in {writes} writes and {flushes} flushes of the disk; "
        f"{flushed} flushed entries and {others} others checked, none lost or wrong"
    )
    assert flushed > 0
