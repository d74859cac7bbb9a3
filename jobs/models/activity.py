"""What happened: to one job (timeline), and by whose hand (activity)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class TimelineEvent(models.TextChoices):
    ENQUEUED = "enqueued"
    CLAIMED = "claimed"
    STALLED = "stalled"
    HANDED_BACK = "handed_back", "handed back"
    RETRY = "retry", "failed, will be retried"
    CANCEL_REQUESTED = "cancel_requested", "cancel requested"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TimelineLine(models.Model):
    """One step of one job. Kept as long as its history, so not tied to the queue row."""

    job_id = models.UUIDField()
    at = models.DateTimeField(db_default=Now())
    event = models.CharField(max_length=30, choices=TimelineEvent.choices)
    attempt = models.IntegerField(default=0)
    worker = models.CharField(max_length=200, null=True)
    detail = models.TextField(default="", db_default="")

    class Meta:
        db_table = "job_timeline"
        ordering = ["id"]
        indexes = [models.Index(fields=["job_id", "id"], name="job_timeline_job")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.event}"


class ActivityEvent(models.Model):
    """Something a person did; names are kept as they were, so the line outlives what it speaks of."""

    at = models.DateTimeField(db_default=Now())
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    username = models.CharField(max_length=150)
    action = models.CharField(max_length=50)
    object_type = models.CharField(max_length=50)
    object_id = models.CharField(max_length=50)
    object_name = models.TextField(default="")
    detail = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        db_table = "activity_events"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["user", "-id"], name="activity_events_user"),
            models.Index(fields=["object_type", "object_id"], name="activity_events_object"),
        ]

    def __str__(self) -> str:
        return f"{self.username} {self.action} {self.object_name}"
