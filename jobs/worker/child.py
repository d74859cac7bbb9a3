"""The process of one queue: claims jobs, runs each in a thread, says that they are alive.

One thread does all the talking to the queue, turn by turn; `turn` is a step that tests can call.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.utils import Error

from jobs.backoff import pause_after
from jobs.processors.control import Stop
from jobs.queue import notify
from jobs.queue.claim import claim
from jobs.queue.connections import is_outage, refresh
from jobs.queue.finish import hand_back_unanswered
from jobs.queue.heartbeat import beat
from jobs.queue.notify import Listener
from jobs.queue.reap import take_back
from jobs.worker import registry
from jobs.worker.registry import Identity
from jobs.worker.runner import JobRun
from jobs.worker.signals import WakePipe, leave_to_supervisor

# After the grace: how long stopped jobs have to clean up and hand themselves back.
LAST_SECONDS = 10.0
# A process manager may signal the whole group beside the supervisor: that is one wish, not two.
SAME_SIGNAL_SECONDS = 2.0

log = logging.getLogger(__name__)


class QueueProcess:
    def __init__(self, identity: Identity, *, drain: bool = False, predecessor: str | None = None) -> None:
        self.queue = identity.role
        self.concurrency = identity.concurrency
        self.identity = identity
        self._predecessor = predecessor
        self.running: dict[UUID, JobRun] = {}
        self._drain = drain
        self._drained = False
        self._unanswered = False
        self._stopping_since: float | None = None
        self._stop_by: float | None = None
        self._next_beat = 0.0
        self._failures = 0
        self._listener = Listener(notify.WAKE, notify.CANCEL)
        self._finished: list[UUID] = []
        self._wake_loop: Callable[[], None] = lambda: None

    # The loop ------------------------------------------------------------------------------------

    def run(self, ready: Callable[[], None]) -> None:
        """Until SIGTERM and all jobs have ended or gone back; with `drain`, until nothing is due."""
        pipe = WakePipe(signal.SIGTERM)
        leave_to_supervisor()
        self._wake_loop = pipe.wake
        parent = os.getppid()
        ready()
        while not self._done():
            seconds = self.turn()
            listening = self._listener.fileno()
            if pipe.wait(seconds, [listening] if listening is not None else []) or os.getppid() != parent:
                self.stop()
                parent = os.getppid()
        self._leave()

    def turn(self) -> float:
        """One turn of the loop; the seconds it may sleep if nothing happens."""
        self._forget_finished()
        try:
            refresh()
            self._inherit()
            self._return_unanswered()
            self._beat_when_due()
            self._hear()
            self._claim()
            self._failures = 0
        except Error as error:
            self._lost_contact(error)
        self._enforce_deadline()
        return self._sleep()

    def stop(self) -> None:
        """Claim nothing more; jobs have the grace to finish. A second call ends the grace."""
        now = time.monotonic()
        if self._stopping_since is not None and now - self._stopping_since < SAME_SIGNAL_SECONDS:
            return
        grace = float(settings.SHUTDOWN_GRACE_SECONDS) if self._stopping_since is None else 0.0
        self._stopping_since, self._stop_by = now, now + grace
        self._next_beat = 0.0
        for run in self.running.values():
            run.control.leave()
        log.info("stopping: %d jobs have %g s to finish", len(self.running), grace, extra=self._fields)

    def _done(self) -> bool:
        if self._stop_by is None:
            return self._drained and not self.running
        return not self.running or time.monotonic() > self._stop_by + LAST_SECONDS

    def _sleep(self) -> float:
        if self._done():
            return 0.0
        now = time.monotonic()
        waits = [settings.POLL_SECONDS, self._next_beat - now, self._listener.wait_at_most()]
        if self._failures:
            waits = [min(settings.HEARTBEAT_SECONDS, pause_after(self._failures))]
        if self._stop_by is not None:
            waits.append(self._stop_by - now if now < self._stop_by else 0.1)
        return max(0.0, min(waits))

    # Steps ---------------------------------------------------------------------------------------

    def _inherit(self) -> None:
        """The supervisor saw the process before this one die: nobody need wait for its jobs to go stale."""
        if self._predecessor is not None:
            take_back(self._predecessor)
            self._predecessor = None

    def _return_unanswered(self) -> None:
        """A claim whose answer got lost may have given us jobs: nobody else knows that they do not run."""
        if self._unanswered:
            hand_back_unanswered(self.identity.name, self.running.keys())
            self._unanswered = False

    def _claim(self) -> None:
        if self._stop_by is not None:
            return
        free = self.concurrency - len(self.running)
        self._unanswered = True
        jobs = claim(self.queue, free, self.identity.name)
        self._unanswered = False
        for job in jobs:
            run = JobRun(job)
            self.running[job.claim_id] = run
            threading.Thread(target=self._thread, args=[run], name=f"job-{job.id}", daemon=True).start()
        self._drained = self._drain and free > 0 and not jobs

    def _thread(self, run: JobRun) -> None:
        try:
            run.run()
        finally:
            self._finished.append(run.job.claim_id)
            self._wake_loop()

    def _forget_finished(self) -> None:
        while self._finished:
            self.running.pop(self._finished.pop(), None)

    def _beat_when_due(self) -> None:
        if time.monotonic() < self._next_beat:
            return
        held = beat(self.running.keys())
        for claim_id, run in self.running.items():
            if claim_id not in held:
                self._check_lost(claim_id, run)
            elif held[claim_id]:
                run.control.stop(Stop.CANCEL)
        registry.beat(self.identity, stopping=self._stop_by is not None)
        self._next_beat = time.monotonic() + settings.HEARTBEAT_SECONDS

    def _check_lost(self, claim_id: UUID, run: JobRun) -> None:
        # A job that has just written its verdict is not active any more, and its thread is about to end.
        if claim_id not in self._finished:
            run.control.stop(Stop.LOST)

    def _hear(self) -> None:
        notes, missed = self._listener.poll()
        if missed:
            self._next_beat = 0.0  # a cancel may have been among what was missed
            return
        for channel, payload in notes:
            if channel == notify.CANCEL:
                self._cancel(payload)

    def _cancel(self, job_id: str) -> None:
        for run in self.running.values():
            if str(run.job.id) == job_id:
                run.control.stop(Stop.CANCEL)

    def _lost_contact(self, error: Error) -> None:
        connection.close()
        self._listener.close()  # a broken socket is readable all the time: the loop would never sleep
        self._next_beat = 0.0  # the first thing to do when it is back: see which claims still hold
        if self._failures == 0:
            log.warning("no contact with the database: %s", str(error).strip(), extra=self._fields)
        self._failures += 1
        if not is_outage(error):
            raise error

    def _enforce_deadline(self) -> None:
        if self._stop_by is not None and time.monotonic() >= self._stop_by:
            for run in self.running.values():
                run.control.stop(Stop.SHUTDOWN)

    def _leave(self) -> None:
        self._listener.close()
        try:
            self._return_unanswered()
            registry.leave(self.identity)
        except Error as error:
            log.warning("could not sign off: %s", str(error).strip(), extra=self._fields)
        log.info("stopped, %d jobs left behind", len(self.running), extra=self._fields)

    @property
    def _fields(self) -> dict[str, str]:
        return {"queue": self.queue, "worker": self.identity.name}
