"""Backup schedules. The row is the scheduler: `next_run_at` alone says when it fires."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from jobs.models import BackupJob, Database, Storage
from jobs.models.base import Owned


class Schedule(Owned):
    # ON DELETE CASCADE in the database itself (migration 0002): a plain DELETE takes the schedules along.
    database = models.ForeignKey(Database, on_delete=models.DO_NOTHING, related_name="schedules")
    name = models.CharField(max_length=100)
    cron_expression = models.CharField(max_length=200)
    timezone = models.CharField(max_length=100, default="UTC")
    enabled = models.BooleanField(default=True)
    flags = models.JSONField(default=dict, blank=True)
    next_run_at = models.DateTimeField(null=True, editable=False, help_text="NULL: not scheduled yet.")
    last_slot = models.DateTimeField(null=True, editable=False)
    skip_missed = models.BooleanField(default=False, help_text="After downtime: no catch-up run.")
    overlap = models.CharField(
        max_length=20,
        choices=[("allow", "run anyway"), ("skip", "skip while the previous one is unfinished")],
        default="allow",
    )
    broken = models.TextField(null=True, editable=False, help_text="Why this row cannot fire.")

    keep_last = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    keep_days = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    keep_hourly = models.PositiveIntegerField(null=True, blank=True)
    keep_daily = models.PositiveIntegerField(null=True, blank=True)
    keep_weekly = models.PositiveIntegerField(null=True, blank=True)
    keep_monthly = models.PositiveIntegerField(null=True, blank=True)
    keep_yearly = models.PositiveIntegerField(null=True, blank=True)
    keep_bytes = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    keep_failed = models.PositiveIntegerField(null=True, blank=True)
    retention_due = models.BooleanField(default=False, editable=False)
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
            models.Index(fields=["next_run_at"], condition=Q(enabled=True), name="backup_schedules_due")
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleStorage(models.Model):
    """Where a schedule's backups go: position 0 is written by the dump, the others are copied to later."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE)
    storage = models.ForeignKey(Storage, on_delete=models.PROTECT)
    position = models.PositiveIntegerField(default=0)
    keep_last = models.PositiveIntegerField(null=True, blank=True)
    keep_days = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        db_table = "backup_schedule_storages"
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
