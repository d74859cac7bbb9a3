"""What a queue's processor is, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from jobs.processors.control import Control
from jobs.queue.rows import Job


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Outcome:
    """What a finished work leaves to write: columns of the completed history row, and what else belongs
    into that very transaction."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    also: Callable[[], None] = _nothing


class Processor(Protocol):
    def work(self, job: Job, control: Control) -> AbstractContextManager[Outcome]:
        """Do the job on entering.

        The verdict is written inside the `with`. If that fails, leaving with the exception must take away
        whatever the work has put into the world under this claim; but not on `VerdictUnknown`. Raises
        `JobFailed`, `HandBack` or `Stopped`; any other exception is a defect and fails the job too.
        """


class JobFailed(Exception):
    """The job has failed, and the message says what happened, to which object, and what to do.

    `values`: columns of the history row to keep with the failure, such as log and warnings.
    """

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(message)
        self.values = values


class VerdictUnknown(Exception):
    """The worker must end while its database is away: the verdict may or may not have got through."""


class HandBack(Exception):
    """The job cannot run now, through no fault of its own: back to waiting for `delay` seconds."""

    def __init__(self, reason: str, delay: float) -> None:
        super().__init__(reason)
        self.delay = delay


@lru_cache(maxsize=16)
def _load(path: str) -> Processor:
    return import_string(path)()  # type: ignore[no-any-return]


def processor_for(queue: str) -> Processor:
    """The processor that PROCESSORS names for the queue; raises `JobFailed` where it names none."""
    path = settings.PROCESSORS.get(queue)
    if path is None:
        raise JobFailed(f"This version of pgbr cannot run {queue} jobs.")
    return _load(path)
