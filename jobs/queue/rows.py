"""A claimed job as a value, and the cursor helpers of this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from jobs.models.queue import Readable

LONGEST_TEXT = 2_000_000  # characters; the logs of tools are shorter


class ClaimLost(Exception):
    """The job belongs to somebody else by now; nothing about it may be written any more."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"job {job_id} is no longer held by this claim")


class AlreadyEnded(Exception):
    """This very claim has written its verdict before; only the answer to that COMMIT got lost."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"job {job_id} has been ended so by this claim already")


@dataclass(frozen=True)
class QueueRow:
    """A row of job_queue. `payload` is whatever JSON somebody put there."""

    id: UUID
    queue: str
    user_id: int
    payload: Any
    attempts: int
    max_attempts: int
    stalls: int
    schedule_id: UUID | None
    slot: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Job(QueueRow):
    """An active row, for the worker that holds it under `claim_id`."""

    claim_id: UUID
    worker: str

    @property
    def log_fields(self) -> dict[str, Any]:
        return {"job": self.id, "queue": self.queue, "attempt": self.attempts, "worker": self.worker}


def rows(statement: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def execute(statement: str, parameters: Mapping[str, Any]) -> int:
    """The number of rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def storable(text: str) -> str:
    """PostgreSQL keeps neither NUL nor half a surrogate pair; a verdict must not fail for what it quotes, nor
    keep all that a server chose to say."""
    return text[:LONGEST_TEXT].replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def as_row(row: Mapping[str, Any]) -> QueueRow:
    return QueueRow(**_columns(row))


def as_job(row: Mapping[str, Any], worker: str) -> Job:
    return Job(**_columns(row), claim_id=row["claim_id"], worker=worker)


def _columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Django's cursors give jsonb as text."""
    columns = {name: row[name] for name in QueueRow.__dataclass_fields__}
    return columns | {"payload": json.loads(columns["payload"], cls=Readable)}
