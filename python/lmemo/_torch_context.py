"""A light way between torch's DataLoader and its worker processes.

    from lmemo.torch import worker_context
    loader = DataLoader(dataset, batch_size=32, num_workers=2, multiprocessing_context=worker_context())

multiprocessing.Queue hands every object to a thread, which pickles it and writes it to a pipe; reading takes a lock and makes a selector. For a batch
that is only named (lmemo/_torch_late.py) this costs more than reading its rows. A WorkerQueue writes at once, to a socket that keeps messages apart
(SOCK_SEQPACKET). So there is nothing to lock, and a process that is killed leaves no half message and no lock that nobody opens.

put() never blocks, as DataLoader assumes: while it hands out indices it takes no results, and workers that wait for room would wait for ever. What does
not fit waits in memory, and a thread, started only then, sends it. A long message goes as a file without a name (memfd), of which the socket carries the descriptor.
"""

from __future__ import annotations

import collections
import errno
import io
import multiprocessing
import os
import pickle
import queue
import select
import socket
import struct
import threading
import time
from multiprocessing import context, reduction, util
from typing import Any

from lmemo._errors import InvalidArgument

LONGEST_IN_SOCKET = 60_000  # Bytes; a socket takes some 200,000 in all.
SEND_BUFFER = 1 << 20  # Asked for; the system gives what it allows.
WATCH_SECONDS = 1.0
_AT_ONCE = socket.MSG_DONTWAIT
_ONE_FD = socket.CMSG_SPACE(struct.calcsize("i"))


class WorkerQueue:
    """What DataLoader uses of multiprocessing.Queue: any number of processes may put, one gets.

    put() does not block and raises at once what pickling raises; multiprocessing.Queue prints that and loses the object.
    """

    def __init__(self) -> None:
        reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._take(reader, writer)

    def _take(self, reader: socket.socket, writer: socket.socket) -> None:
        self._reader, self._writer = reader, writer
        self._joins = True
        self._begin()
        util.register_after_fork(self, WorkerQueue._begin)

    def _begin(self) -> None:
        """Of a process: nothing waits to be sent. What a parent has not sent yet, its own thread sends."""
        self._is_closed = False
        self._waits = -1.0  # What was told to the system; another process may have told it something else.
        self._lock = threading.Lock()  # Guards what follows.
        self._waiting: collections.deque[bytes] = collections.deque()
        self._thread: threading.Thread | None = None
        self._at_exit: util.Finalize | None = None  # Joins it.
        self._buffer = io.BytesIO()
        self._pickler = reduction.ForkingPickler(self._buffer)  # Its table of reducers sees later registrations too.

    def __getstate__(self) -> tuple[Any, ...]:
        context.assert_spawning(self)
        return self._joins, reduction.DupFd(self._reader.fileno()), reduction.DupFd(self._writer.fileno())

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        joins, *descriptors = state
        reader, writer = (socket.socket(fileno=descriptor.detach()) for descriptor in descriptors)
        self._take(reader, writer)
        self._joins = joins

    def __del__(self) -> None:
        if getattr(self, "_thread", self) is None:  # Else making it failed, or there is a thread, which closes them.
            self._close_sockets()

    # ------------------------------------------------------------------------------------------------------- sending

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Sends it, or leaves that to a thread."""
        with self._lock:
            if self._is_closed:
                raise ValueError(f"{self!r} is closed")
            message = self._pickled(obj)
            if self._waiting:
                self._waiting.append(message)
                return
            try:
                self._send(message)
            except BlockingIOError:
                self._waiting.append(message)
                self._start_thread()

    def put_nowait(self, obj: Any) -> None:
        """The same."""
        self.put(obj)

    def _pickled(self, obj: Any) -> bytes:
        self._buffer.seek(0)
        self._buffer.truncate()
        self._pickler.clear_memo()
        try:
            self._pickler.dump(obj)
            return self._buffer.getvalue()
        finally:
            self._pickler.clear_memo()  # It holds what was sent.

    def _send(self, message: bytes) -> None:
        if len(message) <= LONGEST_IN_SOCKET:
            self._writer.send(message, _AT_ONCE)
            return
        with open(os.memfd_create("lmemo-message"), "wb", buffering=0) as file:
            left = memoryview(message)
            while left:
                left = left[file.write(left) :]
            carried = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", file.fileno()))]
            try:
                self._writer.sendmsg([b"."], carried, _AT_ONCE)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:  # So many files are on their way that the system wants one to arrive first.
                    raise
                raise BlockingIOError from error

    def _start_thread(self) -> None:
        self._thread = thread = threading.Thread(target=self._send_what_waits, name="lmemo-sender", daemon=True)
        thread.start()
        if self._joins:
            self._at_exit = util.Finalize(thread, thread.join, exitpriority=-5)  # As multiprocessing does: before a process ends, all is sent.

    def _send_what_waits(self) -> None:
        writable = select.poll()
        writable.register(self._writer, select.POLLOUT)
        while True:
            writable.poll(WATCH_SECONDS * 1000)
            with self._lock:
                if self._is_sent() or _starter_is_gone():  # Then nobody reads any more.
                    self._waiting.clear()
                    self._thread = None
                    self._forget_joining()
                    if self._is_closed:
                        self._close_sockets()
                    return
            time.sleep(0.001)  # Where poll() would not wait for what is missing.

    def _is_sent(self) -> bool:
        """Sends what fits. Requires: the lock is held."""
        try:
            while self._waiting and (self._joins or not self._is_closed):
                self._send(self._waiting[0])
                self._waiting.popleft()
        except BlockingIOError:
            return False
        except OSError:
            pass  # The readers are gone.
        return True

    def _forget_joining(self) -> None:
        if self._at_exit is not None:
            self._at_exit.cancel()
            self._at_exit = None

    # ----------------------------------------------------------------------------------------------------- receiving

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object; queue.Empty if none comes in time, EOFError if the process that started this one is gone."""
        if self._is_closed:
            raise ValueError(f"{self!r} is closed")
        deadline = None if timeout is None else time.monotonic() + timeout
        flags = socket.MSG_CMSG_CLOEXEC
        if block:
            self._wait_at_most(WATCH_SECONDS if timeout is None else timeout)
        else:
            flags |= socket.MSG_DONTWAIT
        while True:
            try:
                message, carried, _, _ = self._reader.recvmsg(LONGEST_IN_SOCKET, _ONE_FD, flags)
            except BlockingIOError:
                if _starter_is_gone():  # torch looks, too, but for another parent than at its start: it may have come too late.
                    raise EOFError("the process that started this one is gone") from None
                if block and (deadline is None or time.monotonic() < deadline):
                    continue
                raise queue.Empty from None
            if carried:
                message = _read_carried(carried)
            elif not message:
                raise EOFError("all who could put something are gone")
            return pickle.loads(message)

    def _wait_at_most(self, seconds: float) -> None:
        """Tells the system, which keeps it with the socket, so that one call both waits and takes."""
        if seconds != self._waits:
            micros = max(1, int(seconds * 1e6))
            self._reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(micros, 1_000_000)))
            self._waits = seconds

    def get_nowait(self) -> Any:
        """What is there now."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether nothing is there now."""
        readable = select.poll()
        readable.register(self._reader, select.POLLIN)
        return not readable.poll(0)

    # ------------------------------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """This process puts and gets nothing any more; what waits is still sent, unless cancel_join_thread() was called."""
        with self._lock:
            self._is_closed = True
            if self._thread is None:
                self._close_sockets()

    def join_thread(self) -> None:
        """Waits until all is sent."""
        thread = self._thread
        if thread is not None and self._joins:
            thread.join()

    def cancel_join_thread(self) -> None:
        """This process may end before all is sent."""
        self._joins = False
        self._forget_joining()

    def _close_sockets(self) -> None:
        self._reader.close()
        self._writer.close()


def _starter_is_gone() -> bool:
    starter = multiprocessing.parent_process()
    return starter is not None and not starter.is_alive()


def _read_carried(carried: list[tuple[int, int, bytes]]) -> bytes:
    descriptor = struct.unpack("i", carried[0][2])[0]
    with open(descriptor, "rb", buffering=0) as file:
        file.seek(0)
        return file.readall()


class _WithWorkerQueues(context.BaseContext):
    def Queue(self, maxsize: int = 0) -> Any:  # noqa: N802
        """A WorkerQueue; with a limit, multiprocessing's."""
        return super().Queue(maxsize) if maxsize > 0 else WorkerQueue()


class _ForkContext(_WithWorkerQueues, context.ForkContext):
    pass


class _SpawnContext(_WithWorkerQueues, context.SpawnContext):
    pass


class _ForkServerContext(_WithWorkerQueues, context.ForkServerContext):
    pass


_CONTEXTS: dict[str, context.BaseContext] = {"fork": _ForkContext(), "spawn": _SpawnContext(), "forkserver": _ForkServerContext()}


def worker_context(start: str | None = None) -> context.BaseContext:
    """For DataLoader(…, multiprocessing_context=…): worker processes that cost less per batch, started by fork, spawn or forkserver (default: Python's)."""
    name = start or multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    if name not in _CONTEXTS:
        raise InvalidArgument(f"start is {name!r}; expected one of {', '.join(_CONTEXTS)}")
    return _CONTEXTS[name]
