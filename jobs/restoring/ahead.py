"""Jobs that are on their way into a target already."""

from __future__ import annotations

from django.db.models import Q

from jobs.models import Database, QueuedJob
from jobs.models.base import Queue
from jobs.models.queue import QueueStatus
from jobs.processors.preflight import Finding

UNFINISHED = [QueueStatus.PENDING, QueueStatus.ACTIVE]


def ahead(database: Database, target_name: str) -> list[Finding]:
    """Jobs take turns, so that nothing breaks: but a second tab or a second person may not mean to."""
    there = str(database.pk)
    into = Q(queue=Queue.RESTORE, payload__database_id=there) | Q(
        queue=Queue.MIGRATION, payload__target_database_id=there
    )
    jobs = QueuedJob.objects.filter(into, status__in=UNFINISHED, payload__target_name=target_name)
    first = jobs.order_by("created_at").first()
    if first is None:
        return []
    state = "running" if first.status == QueueStatus.ACTIVE else "queued"
    return [
        Finding(
            "warn",
            f"A {first.queue} into “{target_name}” is {state} already",
            f"Job {first.pk}, since {first.created_at:%Y-%m-%d %H:%M} UTC. This one would wait for it, and "
            "then write over what that has brought.",
            "Wait for it and look at what it did, unless you want both.",
        )
    ]
