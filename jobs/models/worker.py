"""Who is alive: one row a process that takes jobs or does upkeep."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from jobs.models.base import UuidModel


class WorkerProcess(UuidModel):
    name = models.CharField(max_length=200, unique=True, help_text="What locked_by of its jobs says.")
    host = models.CharField(max_length=200)
    pid = models.IntegerField()
    # A queue's name, or "upkeep".
    role = models.CharField(max_length=20)
    concurrency = models.IntegerField(default=0)
    client_majors = models.JSONField(default=list, help_text="Of the PostgreSQL client tools it found.")
    started_at = models.DateTimeField(db_default=Now())
    heartbeat_at = models.DateTimeField(db_default=Now())
    stopping = models.BooleanField(default=False)

    class Meta:
        db_table = "worker_processes"
        verbose_name_plural = "worker processes"
        indexes = [models.Index(fields=["role", "heartbeat_at"], name="worker_processes_alive")]

    def __str__(self) -> str:
        return self.name
