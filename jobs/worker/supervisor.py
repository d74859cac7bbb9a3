"""The parent of a worker: forks one process per queue and one for upkeep, and keeps them running.

It has one thread and no database connection, so forking is safe and an outage of the database is none of
its business. It may be PID 1 of a container: children it does not know are reaped and forgotten.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from jobs.backoff import pause_after
from jobs.processors.source import toolsets
from jobs.storage import s3_client
from jobs.worker.child import LAST_SECONDS, QueueProcess
from jobs.worker.registry import Identity, new_name
from jobs.worker.signals import WakePipe, wanted
from jobs.worker.upkeep import UpkeepProcess

READY_SECONDS = 60.0
CALM_SECONDS = 60.0  # a child that lived this long owes its death to something new
LONGEST_BACK_OFF = 30.0

log = logging.getLogger(__name__)

# Runs a role in the forked child: who it is, the name of the process it replaces, what to call once it works.
Role = Callable[[Identity, str | None, Callable[[], None]], None]


@dataclass
class Child:
    """One place to fill. `pid` is 0 while nobody fills it."""

    role: str
    run: Role
    concurrency: int = 0
    name: str | None = None
    pid: int = 0
    started: float = 0.0
    ready_fd: int = -1
    ready: bool = False
    failures: int = 0
    start_at: float = 0.0
    done: bool = False


class Supervisor:
    def __init__(self, children: list[Child], *, drain: bool = False) -> None:
        self._drain = drain
        self._children = children
        self._client_majors: tuple[int, ...] = ()
        self._pipe: WakePipe | None = None
        self._stop_by: float | None = None

    def run(self) -> int:
        """Until a signal or, draining, until nothing is due; the exit code."""
        stops = [signal.SIGTERM, signal.SIGINT, *wanted(signal.SIGHUP)]
        pipe = self._pipe = WakePipe(*stops, signal.SIGCHLD)
        s3_client.preload()
        # A collection in a child would write to, and so copy, every page it shares with this process.
        gc.freeze()
        # Asked once, before the forks: the children know the answers without asking again.
        self._client_majors = tuple(sorted({tools.major for tools in toolsets()}))
        log.info("worker started, pid %d, client tools of PostgreSQL %s", os.getpid(), self._client_majors)
        while not self._over():
            self._fill_places()
            signals = pipe.wait(self._sleep(), [c.ready_fd for c in self._children if c.ready_fd >= 0])
            if not set(stops).isdisjoint(signals):
                self._stop()
            self._hear_ready()
            self._reap()
            self._kill_overdue()
        log.info("worker stopped")
        return 0

    def _over(self) -> bool:
        if (
            self._drain
            and self._stop_by is None
            and all(c.done for c in self._children if c.role != "upkeep")
        ):
            self._stop()
        return self._stop_by is not None and not any(child.pid for child in self._children)

    def _stop(self) -> None:
        self._stop_by = time.monotonic() + settings.SHUTDOWN_GRACE_SECONDS + 2 * LAST_SECONDS
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for child in self._children:
            if child.pid:
                os.kill(child.pid, number)

    def _sleep(self) -> float:
        if self._stop_by is not None:
            return 0.5
        waiting = [c.start_at - time.monotonic() for c in self._children if not c.pid and not c.done]
        return max(0.0, min([5.0, *waiting]))

    # Children ------------------------------------------------------------------------------------

    def _fill_places(self) -> None:
        for child in self._children:
            if (
                self._stop_by is None
                and not child.pid
                and not child.done
                and time.monotonic() >= child.start_at
            ):
                self._fork(child)

    def _fork(self, child: Child) -> None:
        predecessor, child.name = child.name, new_name(child.role)
        identity = Identity(child.name, child.role, child.concurrency, self._client_majors)
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            self._become(lambda: child.run(identity, predecessor, lambda: _say_ready(write)), child.role)
        os.close(write)
        child.pid, child.ready_fd, child.ready, child.started = pid, read, False, time.monotonic()
        log.info("started the %s process, pid %d", child.role, pid)

    def _become(self, live: Callable[[], None], role: str) -> None:
        """The forked child's whole life. Never returns: no code of the parent must run in it."""
        code = 70
        try:
            if self._pipe is not None:
                self._pipe.close()
            for other in self._children:
                if other.ready_fd >= 0:
                    os.close(other.ready_fd)
            live()
            code = 0
        except BaseException:
            log.exception("the %s process died of a defect", role)
        finally:
            logging.shutdown()
            os._exit(code)

    def _hear_ready(self) -> None:
        waiting = [child for child in self._children if child.ready_fd >= 0]
        readable, _, _ = select.select([child.ready_fd for child in waiting], [], [], 0)
        for child in waiting:
            if child.ready_fd in readable:
                child.ready = os.read(child.ready_fd, 1) == b"1"
                self._close_ready(child)

    def _close_ready(self, child: Child) -> None:
        if child.ready_fd >= 0:
            os.close(child.ready_fd)
        child.ready_fd = -1

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self._children:
                if child.pid == pid:
                    self._bury(child, os.waitstatus_to_exitcode(status))

    def _bury(self, child: Child, code: int) -> None:
        self._close_ready(child)
        lived = time.monotonic() - child.started
        child.pid = 0
        child.done = self._drain and code == 0 and child.role != "upkeep"
        if self._stop_by is not None or child.done:
            return
        child.failures = 0 if lived > CALM_SECONDS else child.failures + 1
        pause = pause_after(child.failures, first=0.5, longest=LONGEST_BACK_OFF) if child.failures else 0.0
        child.start_at = time.monotonic() + pause
        log.error(
            "the %s process ended (%s) after %.0f s, next one in %.1f s", child.role, _how(code), lived, pause
        )

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for child in self._children:
            never_ready = child.pid and not child.ready and now - child.started > READY_SECONDS
            if child.pid and (never_ready or (self._stop_by is not None and now > self._stop_by)):
                log.error(
                    "the %s process does not %s: killed", child.role, "start" if never_ready else "stop"
                )
                os.kill(child.pid, signal.SIGKILL)


def _say_ready(descriptor: int) -> None:
    os.write(descriptor, b"1")
    os.close(descriptor)


def worker(queues: list[str], concurrency: int, *, drain: bool = False) -> Supervisor:
    """What `manage.py runworker` runs: a process for each queue, and one for upkeep."""
    children = [Child(queue, _queue_role(drain), concurrency) for queue in queues]
    return Supervisor([*children, Child("upkeep", _upkeep_role)], drain=drain)


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _queue_role(drain: bool) -> Role:
    def run(identity: Identity, predecessor: str | None, ready: Callable[[], None]) -> None:
        QueueProcess(identity, drain=drain, predecessor=predecessor).run(ready)

    return run


def _upkeep_role(identity: Identity, _: str | None, ready: Callable[[], None]) -> None:
    UpkeepProcess(identity).run(ready)
