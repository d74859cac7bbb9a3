"""One line of a job's timeline."""

from __future__ import annotations

from uuid import UUID

from jobs.models import TimelineLine
from jobs.models.activity import TimelineEvent


def note(
    job_id: UUID, event: TimelineEvent, *, attempt: int = 0, worker: str | None = None, detail: str = ""
) -> None:
    TimelineLine.objects.create(job_id=job_id, event=event, attempt=attempt, worker=worker, detail=detail)
