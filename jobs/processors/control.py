"""How the main thread of a worker process stops a job that runs in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from enum import Enum
from typing import TypeVar

from django.db.utils import Error

from jobs.pgtools.errors import ToolFailed
from jobs.queue import connections

Result = TypeVar("Result")
LEAVING_SECONDS = 2.0


class Stop(Enum):
    CANCEL = "cancelled"
    SHUTDOWN = "the worker is shutting down"
    LOST = "the claim was lost"


class Stopped(Exception):
    """Raised in the job's thread once it has been told to stop."""

    def __init__(self, why: Stop) -> None:
        super().__init__(why.value)
        self.why = why


class Control:
    """Shared by a job's thread and the thread that may stop it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._leaving = threading.Event()
        self._why: Stop | None = None
        self._killers: list[Callable[[], None]] = []

    @property
    def why(self) -> Stop | None:
        return self._why

    def stop(self, why: Stop) -> None:
        """Tell the job to stop and kill what it runs, at once. The first reason stands, but a lost claim
        overrides any: then nothing may be written."""
        with self._lock:
            if self._why is None or why is Stop.LOST:
                self._why = why
            killers = list(self._killers)
        self._stopped.set()
        for kill in killers:
            # Ending a tool gently takes seconds, which the caller's heartbeat does not have.
            threading.Thread(target=kill, daemon=True).start()

    def leave(self) -> None:
        """The worker is about to end: the job has the grace to finish, but may lose its tools before."""
        self._leaving.set()

    def check_tool(self, error: ToolFailed) -> None:
        """Raises `Stopped` when a tool failed because it was to. A service manager that ends a worker signals
        the tools as well (systemd does by default), and theirs may come first."""
        self.check()
        if error.ended_from_outside and self._leaving.wait(LEAVING_SECONDS):
            raise Stopped(Stop.SHUTDOWN)

    def stopped(self) -> bool:
        return self._stopped.is_set()

    def check(self) -> None:
        if self._why is not None:
            raise Stopped(self._why)

    def wait(self, seconds: float) -> bool:
        """Sleep, but not past a stop; whether the job has been told to stop."""
        return self._stopped.wait(seconds)

    def patiently(self, write: Callable[[], Result]) -> Result:
        """The result of `write` on the borrowed connection, tried again while the database is away. Raises
        `Stopped` once told to stop: then that is why the job ends, and not the outage."""
        try:
            return connections.patiently(write, self.wait)
        except Error:
            self.check()
            raise

    def interruptibly(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which may wait where nothing wakes it, such as for a host that is silent:
        in a thread of its own, that is left to itself once the job is told to stop. Raises `Stopped` then."""
        future: Future[Result] = Future()
        ended = threading.Event()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - carried to the job's thread
                future.set_exception(error)
            ended.set()

        with self.killing(ended.set):
            threading.Thread(target=run, daemon=True).start()
            ended.wait()
        if not future.done():
            self.check()
        return future.result()

    @contextmanager
    def killing(self, kill: Callable[[], None]) -> Iterator[None]:
        """While inside, a stop calls `kill` (from another thread; it must be safe to call twice)."""
        with self._lock:
            self._killers.append(kill)
            late = self._why is not None
        if late:
            kill()
        try:
            yield
        finally:
            with self._lock:
                self._killers.remove(kill)
