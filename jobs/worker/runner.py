"""One job, from its claim to its verdict, in a thread of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from django.db import connections
from django.db.utils import Error

from jobs.processors.base import HandBack, JobFailed, VerdictUnknown, processor_for
from jobs.processors.control import Control, Stop, Stopped
from jobs.queue import finish
from jobs.queue.connections import is_outage, patiently
from jobs.queue.rows import AlreadyEnded, ClaimLost, Job

# How long a stopping worker goes on trying to write a verdict while the database is away.
LAST_TRIES = 5

log = logging.getLogger(__name__)


class JobRun:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.control = Control()
        self._last_tries = LAST_TRIES

    def run(self) -> None:
        """Never raises: whatever happens becomes a verdict, or is logged once the claim is lost."""
        log.info("started", extra=self.job.log_fields)
        try:
            self._write(self._outcome())
        except ClaimLost:
            log.warning("claim lost: nothing was written", extra=self.job.log_fields)
        except Exception:
            log.exception(
                "the verdict could not be written; the reaper will see to it", extra=self.job.log_fields
            )
        finally:
            connections.close_all()

    def _outcome(self) -> Callable[[], None] | None:
        """Do the work; the verdict that is still to be written, None when it has been."""
        try:
            self._work()
        except (ClaimLost, VerdictUnknown):
            raise
        except Stopped as stopped:
            return self._stopped(stopped.why)
        except HandBack as back:
            log.info("handed back: %s", back, extra=self.job.log_fields)
            return partial(finish.hand_back, self.job, str(back), delay=back.delay)
        except JobFailed as failure:
            log.warning("failed: %s", failure, extra=self.job.log_fields)
            return partial(finish.fail, self.job, str(failure), **failure.values)
        except Exception as error:
            log.exception("failed by a defect", extra=self.job.log_fields)
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            message = f"A defect in pgbr ({what}). The worker's log has the details; please report it."
            return partial(finish.fail, self.job, message)
        log.info("completed", extra=self.job.log_fields)
        return None

    def _work(self) -> None:
        self._write(partial(finish.start, self.job))
        processor = processor_for(self.job.queue)
        with processor.work(self.job, self.control) as outcome:
            self._write(partial(finish.complete, self.job, outcome.also, **outcome.columns))

    def _stopped(self, why: Stop) -> Callable[[], None]:
        log.info("stopped: %s", why.value, extra=self.job.log_fields)
        if why is Stop.CANCEL:
            return partial(finish.cancelled, self.job, "Cancelled.")
        if why is Stop.SHUTDOWN:
            return partial(finish.hand_back, self.job, "The worker was shut down; the job starts again.")
        raise ClaimLost(self.job.id)

    def _write(self, verdict: Callable[[], None] | None) -> None:
        if verdict is None:
            return
        try:
            patiently(verdict, self._pause)
        except AlreadyEnded:
            log.info("the verdict had got through", extra=self.job.log_fields)
        except Error as error:
            if is_outage(error):
                raise VerdictUnknown from error
            raise

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try to write; whether to give up.

        A lost claim is no reason to: it may be our own verdict that made it end, and only the database knows.
        """
        if self.control.why is Stop.SHUTDOWN:
            self._last_tries -= 1
        if self.control.stopped():
            time.sleep(seconds)
        else:
            self.control.wait(seconds)
        return self._last_tries <= 0
