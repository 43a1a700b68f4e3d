"""A disk that remembers every write and every flush, in their order, so that a test can cut the power at any of them.

A block device of the kernel (loop) lies over one file of a FUSE file system that this process serves. A write to the
device arrives here as a write to that file, a cache flush of the device as an fsync of it. Needs root, /dev/fuse and a
loop device; nothing else, in particular no device mapper.
"""

from __future__ import annotations

import ctypes
import os
import random
import struct
import subprocess
import threading
from pathlib import Path

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 1, 2, 3, 4, 14, 15, 16, 17, 18, 20
FLUSH, INIT, OPENDIR, RELEASEDIR, ACCESS, DESTROY, BATCH_FORGET = 25, 26, 27, 29, 34, 38, 42
ROOT, DISK = 1, 2  # Node numbers.
ENOENT, ENOSYS = 2, 38
MAX_WRITE = 128 << 10
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
DIRECT_IO = 1
SECTOR = 512

libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """What this machine lacks, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.path.exists(device):
            return f"needs {device}"
    for program in ("losetup", "mkfs.ext4", "mount", "fsck.ext4"):
        if not any(os.access(os.path.join(folder, program), os.X_OK) for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin")):
            return f"needs {program}"
    return None


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class RecordingDisk:
    """Serves `image` as a block device; `log` has an (offset, data) for each write and a None for each flush."""

    def __init__(self, image: bytes, mount_point: Path) -> None:
        self.base = image
        self.log: list[tuple[int, bytes] | None] = []
        self._now = bytearray(image)
        self._mount_point = mount_point
        mount_point.mkdir()
        self._fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        data = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"lmemo-recorder", str(mount_point).encode(), b"fuse", 0, data) != 0:
            raise OSError(ctypes.get_errno(), "mount fuse")
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()
        self.device = run("losetup", "--find", "--show", str(mount_point / "disk")).strip()

    def close(self) -> None:
        run("losetup", "--detach", self.device)
        run("umount", "--lazy", str(self._mount_point))
        self._server.join(timeout=30)
        os.close(self._fuse)

    def image_after(self, position: int, dice: random.Random, keeps_order: bool) -> bytearray:
        """What the disk holds if the power goes after so many entries of the log.

        keeps_order: every write up to there, as by a disk without a volatile cache. Else: every write before the last
        flush, and of those after it each sector with an even chance, as by a disk that writes its cache as it likes.
        """
        image = bytearray(self.base)
        flushed = max((i for i in range(position) if self.log[i] is None), default=0)
        for index in range(position):
            entry = self.log[index]
            if entry is None:
                continue
            offset, data = entry
            if keeps_order or index < flushed:
                image[offset : offset + len(data)] = data
            else:
                for at in range(0, len(data), SECTOR):
                    if dice.random() < 0.5:
                        image[offset + at : offset + at + SECTOR] = data[at : at + SECTOR]
        return image

    # ---------------------------------------------------------------------------------------- the FUSE protocol

    def _attributes(self, node: int) -> bytes:
        size = 0 if node == ROOT else len(self._now)
        mode = 0o040755 if node == ROOT else 0o100600
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._fuse, MAX_WRITE + 8192)
            except OSError as error:
                if error.errno in (2, 4, 11):  # Interrupted: the next one.
                    continue
                return  # Unmounted.
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            if opcode in (FORGET, BATCH_FORGET):
                continue
            error, answer = self._answer(opcode, node, memoryview(request)[40:])
            try:
                os.write(self._fuse, struct.pack("<IiQ", 16 + len(answer), -error, unique) + answer)
            except OSError:
                continue  # The asker is gone.
            if opcode == DESTROY:
                return

    def _answer(self, opcode: int, node: int, body: memoryview) -> tuple[int, bytes]:
        if opcode == INIT:
            major, minor, readahead, flags = struct.unpack_from("<4I", body)
            ours = flags & (BIG_WRITES | MAX_PAGES)
            return 0, struct.pack("<4I2HIIHHI", 7, 31, readahead, ours, 16, 12, MAX_WRITE, 1, MAX_WRITE // 4096, 0, 0) + bytes(28)
        if opcode == LOOKUP:
            if bytes(body).rstrip(b"\0") != b"disk":
                return ENOENT, b""
            return 0, struct.pack("<4Q2I", DISK, 0, 3600, 3600, 0, 0) + self._attributes(DISK)
        if opcode in (GETATTR, SETATTR):
            return 0, struct.pack("<Q2I", 3600, 0, 0) + self._attributes(node)
        if opcode in (OPEN, OPENDIR):
            return 0, struct.pack("<Q2I", 0, DIRECT_IO if node == DISK else 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, bytes(self._now[offset : offset + size])
        if opcode == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            data = bytes(body[40 : 40 + size])
            self._now[offset : offset + size] = data
            self.log.append((offset, data))
            return 0, struct.pack("<II", size, 0)
        if opcode == FSYNC:
            self.log.append(None)
            return 0, b""
        if opcode == STATFS:
            return 0, struct.pack("<5Q4I24x", 1 << 20, 1 << 20, 1 << 20, 10, 10, 4096, 255, 4096, 0)
        if opcode in (RELEASE, RELEASEDIR, FLUSH, ACCESS, DESTROY):
            return 0, b""
        return ENOSYS, b""
