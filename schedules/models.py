"""Backup schedules. The row is the scheduler: `next_run_at` alone says when it fires."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models import BackupJob, Database, Storage
from jobs.models.base import Owned, UuidModel, one_of
from jobs.models.queue import Readable


class Keeping(models.Model):
    """What retention keeps; empty everywhere: all. `schedules.retention.Policy` is the same as a value."""

    keep_last = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    keep_days = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    keep_hourly = models.PositiveIntegerField(null=True, blank=True)
    keep_daily = models.PositiveIntegerField(null=True, blank=True)
    keep_weekly = models.PositiveIntegerField(null=True, blank=True)
    keep_monthly = models.PositiveIntegerField(null=True, blank=True)
    keep_yearly = models.PositiveIntegerField(null=True, blank=True)
    keep_bytes = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])

    class Meta:
        abstract = True


class Schedule(Owned, Keeping):
    # ON DELETE CASCADE in the database itself (migration 0002): a plain DELETE takes the schedules along.
    database = models.ForeignKey(Database, on_delete=models.DO_NOTHING, related_name="schedules")
    name = models.CharField(max_length=100)
    cron_expression = models.CharField(max_length=200)
    timezone = models.CharField(max_length=100, default="UTC")
    enabled = models.BooleanField(default=True)
    flags = models.JSONField(default=dict, decoder=Readable, blank=True)
    next_run_at = models.DateTimeField(null=True, editable=False, help_text="NULL: not scheduled yet.")
    last_slot = models.DateTimeField(null=True, editable=False)
    skip_missed = models.BooleanField(default=False, help_text="After downtime: no catch-up run.")
    overlap = models.CharField(
        max_length=20,
        choices=[("allow", "run anyway"), ("skip", "skip while the previous one is unfinished")],
        default="allow",
    )
    broken = models.TextField(null=True, editable=False, help_text="Why this row cannot fire.")

    keep_failed = models.PositiveIntegerField(
        null=True, blank=True, help_text="Failed and cancelled runs that stay in the history; empty: all."
    )
    pruned_at = models.DateTimeField(null=True, editable=False, help_text="When retention last went through.")
    retention_error = models.TextField(null=True, editable=False)

    storages = models.ManyToManyField(Storage, through="ScheduleStorage")
    ping_start_url = models.TextField(default="", blank=True)
    ping_success_url = models.TextField(default="", blank=True)
    ping_failure_url = models.TextField(default="", blank=True)

    class Meta:
        db_table = "backup_schedules"
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="schedules_name_per_user")]
        indexes = [
            models.Index(fields=["next_run_at"], condition=Q(enabled=True), name="backup_schedules_due"),
            models.Index(fields=["pruned_at"], name="backup_schedules_pruned"),
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleStorage(Keeping):
    """Where a schedule's backups go: position 0 is written by the dump, the others are copied to later.

    With no rule of its own, what lies there is kept as the schedule says.
    """

    schedule = models.ForeignKey(Schedule, on_delete=models.DO_NOTHING)
    storage = models.ForeignKey(Storage, on_delete=models.PROTECT)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "backup_schedule_storages"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "storage"], name="schedule_storage_once"),
            models.UniqueConstraint(fields=["schedule", "position"], name="schedule_storage_position"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} {self.position}"


class SkippedSlot(models.Model):
    """A due slot that started no backup, and why."""

    schedule = models.ForeignKey(Schedule, on_delete=models.DO_NOTHING)
    slot = models.DateTimeField()
    reason = models.TextField()
    backup = models.ForeignKey(BackupJob, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table = "backup_schedule_skips"
        constraints = [models.UniqueConstraint(fields=["schedule", "slot"], name="schedule_skip_once")]

    def __str__(self) -> str:
        return f"{self.schedule_id} {self.slot:%Y-%m-%d %H:%M}"


class PingKind(models.TextChoices):
    START = "start"
    SUCCESS = "success"
    FAILURE = "failure"


class SchedulePing(UuidModel):
    """A call to somebody's monitor that is to be made, or was. One a backup and kind."""

    schedule = models.ForeignKey(Schedule, on_delete=models.DO_NOTHING)
    backup_id = models.UUIDField()
    kind = models.CharField(max_length=20, choices=PingKind.choices)
    created_at = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, db_default=Now(), help_text="NULL: done or given up.")
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(null=True)

    class Meta:
        db_table = "backup_schedule_pings"
        constraints = [
            one_of("kind", PingKind, "backup_schedule_pings_kind"),
            models.UniqueConstraint(fields=["backup_id", "kind"], name="schedule_ping_once"),
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="schedule_pings_due",
            ),
            models.Index(fields=["schedule", "-created_at"], name="schedule_pings_latest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.backup_id}"
