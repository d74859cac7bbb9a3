"""The queue: one table for all three queues. Only `jobs.queue` and `jobs.services` write to it."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs.models.base import Owned, Queue, one_of


class Readable(json.JSONDecoder):
    """What Python cannot read (numbers of 5000 digits, a thousand nested lists) is no payload, None: it must
    stop neither the claim, the reaper or a cancel, nor a page."""

    def decode(self, text: str, *rest: Any) -> Any:
        try:
            return super().decode(text, *rest)
        except (ValueError, RecursionError):
            return None


class QueueStatus(models.TextChoices):
    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class QueuedJob(Owned):
    queue = models.CharField(max_length=20, choices=Queue.choices)
    payload = models.JSONField(default=dict, decoder=Readable, help_text="Ids and flags, never secrets.")
    status = models.CharField(max_length=20, choices=QueueStatus.choices, default=QueueStatus.PENDING)
    run_at = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(default=0)
    max_attempts = models.IntegerField(default=1)
    stalls = models.IntegerField(default=0)
    claim_id = models.UUIDField(null=True, help_text="Of the claim that holds the job; never used twice.")
    locked_by = models.CharField(max_length=200, null=True)
    locked_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    schedule_id = models.UUIDField(null=True)
    slot = models.DateTimeField(null=True)
    last_error = models.TextField(null=True)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "job_queue"
        verbose_name = "job"
        constraints = [
            one_of("queue", Queue, "job_queue_queue"),
            one_of("status", QueueStatus, "job_queue_status"),
            models.CheckConstraint(
                condition=~Q(status="active")
                | Q(claim_id__isnull=False, locked_by__isnull=False, heartbeat_at__isnull=False),
                name="job_queue_active_is_claimed",
            ),
            models.UniqueConstraint(fields=["schedule_id", "slot"], name="job_queue_schedule_slot"),
        ]
        indexes = [
            models.Index(
                F("queue"),
                F("run_at"),
                F("created_at"),
                condition=Q(status="pending"),
                name="job_queue_claim",
            ),
            models.Index(F("heartbeat_at"), condition=Q(status="active"), name="job_queue_reap"),
            models.Index(F("completed_at"), condition=Q(completed_at__isnull=False), name="job_queue_purge"),
            models.Index(fields=["user", "created_at"], name="job_queue_user"),
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.id}"
