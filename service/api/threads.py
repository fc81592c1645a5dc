"""The threads of a web process: one that waits for its client lets another one work in its place.

A client may send or read a byte a second. The thread that serves it waits in the kernel nearly all of that time and
costs nearly nothing, but of a fixed number of threads a few dozen such clients would hold all::

    at work   ≤ ESPALIER_WEB_THREADS   │ aside, each waiting for its client   ≤ MOST_ASIDE
    ──────────────────────────────────►│
              the socket gives nothing │ a thread more is started, if somebody waits for one
    ◄──────────────────────────────────│
              it gives something       │ there may be one too many now: the next to be done ends

Bytes that wait to be sent are in memory: threads that hold too many of them together stay at work.
"""

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Final

__all__ = ["MOST_ASIDE", "ClientSocket", "Threads"]

MOST_ASIDE: Final = 512
"""Threads of a process that wait for their clients; more of them count as at work."""
MOST_HELD: Final = 256 * 2**20
"""Bytes that such threads hold, together, to be sent."""


class Threads(Executor):
    """A pool of threads, of which those that stand aside do not count."""

    def __init__(self, most: int, *, most_aside: int = MOST_ASIDE, most_held: int = MOST_HELD) -> None:
        """Let `most` threads be at work at a time; they are started when they are needed."""
        self._most, self._most_aside, self._most_held = most, most_aside, most_held
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._n_threads = self._n_aside = self._n_held = 0
        self._n_free = 0  # threads that wait for a task, less tasks that wait for a thread
        self._is_over = False

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a thread do it.

        Raises:
            RuntimeError: The pool was shut down.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError("the threads are to end")
            self._tasks.put((future, lambda: work(*args, **kwargs)))
            self._n_free -= 1
            self._start_one()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the parent's
        """Have every thread end when it has nothing left to do; none is waited for."""
        with self._lock:
            self._is_over = True
            for _ in range(self._n_threads):
                self._tasks.put(None)

    @contextmanager
    def aside(self, n_bytes: int = 0) -> Iterator[None]:
        """Wait for a client, holding so many bytes: meanwhile the calling thread, one of these, does not count."""
        with self._lock:
            counts = self._n_aside < self._most_aside and (not n_bytes or self._n_held + n_bytes <= self._most_held)
            if counts:
                self._n_aside += 1
                self._n_held += n_bytes
                self._start_one()
        try:
            yield
        finally:
            if counts:
                with self._lock:
                    self._n_aside -= 1
                    self._n_held -= n_bytes

    def _start_one(self) -> None:
        """Start a thread if a task waits for one, and one more may be at work."""
        if self._n_free < 0 and self._n_threads - self._n_aside < self._most and not self._is_over:
            with suppress(RuntimeError):  # the system gives no more threads: those that there are do the work
                threading.Thread(target=self._work, daemon=True).start()
                self._n_threads += 1
                self._n_free += 1

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, work = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del task, future, work  # what was done is not held until there is more to do
            with self._lock:
                if self._n_threads - self._n_aside > self._most and not self._is_over:
                    self._n_threads -= 1
                    return
                self._n_free += 1


class ClientSocket(socket.socket):
    """A client's connection: the thread that waits for it stands aside.

    Attributes:
        threads: Of which it is one.
        until: When what is being received has to be there, in monotonic seconds.
    """

    __slots__ = ("threads", "until")
    threads: Threads
    until: float

    @classmethod
    def of(cls, plain: socket.socket, threads: Threads) -> "ClientSocket":
        """Take a connection over."""
        timeout = plain.gettimeout()
        one = cls(plain.family, plain.type, plain.proto, fileno=plain.detach())
        one.settimeout(timeout)
        one.threads, one.until = threads, math.inf
        return one

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive, as the parent does.

        Raises:
            BlockingIOError: Nothing came for as long as the kernel is told to wait, or what is received is late.
        """
        timeout = self.gettimeout()
        if timeout != 0 and timeout is not None:
            with self.threads.aside():
                return super().recv(size, flags)
        try:
            return super().recv(size, flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            if timeout == 0 or time.monotonic() > self.until:
                raise
        with self.threads.aside():
            return super().recv(size, flags)

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, /) -> int:
        """Receive into a buffer, as the parent does.

        Raises:
            BlockingIOError: As `recv`.
        """
        if self.gettimeout() is None:
            with suppress(BlockingIOError):
                return super().recv_into(buffer, size, flags | socket.MSG_DONTWAIT)
        with self.threads.aside():
            return super().recv_into(buffer, size, flags)

    def sendall(self, content: Any, flags: int = 0, /) -> None:
        """Send all, as the parent does.

        Raises:
            BlockingIOError: Nothing was taken for as long as the kernel is told to wait.
        """
        rest = memoryview(content).cast("B")
        if self.gettimeout() is None:
            with suppress(BlockingIOError):
                rest = rest[self.send(rest, flags | socket.MSG_DONTWAIT) :]
            if not rest:
                return
        with self.threads.aside(len(rest)):
            super().sendall(rest, flags)
