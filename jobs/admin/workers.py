"""Who is alive. Workers belong to the instance: everyone may know whether their jobs will run."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.base import ReadOnlyAdmin
from jobs.models import WorkerProcess


def fresh() -> Q:
    """Heard of within the stale period, by the database's clock."""
    return Q(heartbeat_at__gte=Now() - timedelta(seconds=settings.STALE_SECONDS))


@admin.register(WorkerProcess)
class WorkerAdmin(ReadOnlyAdmin[WorkerProcess]):
    owner_field = ""
    page_title = "Workers"
    list_select_related = False
    list_display = ["state", "role", "name", "host", "pid", "concurrency", "clients", "started", "seen"]
    list_display_links = None
    ordering = ["role", "started_at"]
    actions = None

    def visible(self, request: HttpRequest, rows: QuerySet[WorkerProcess]) -> QuerySet[WorkerProcess]:
        return rows.annotate(alive=ExpressionWrapper(fresh(), output_field=BooleanField()))

    def is_visible(self, request: HttpRequest, obj: WorkerProcess | None) -> bool:
        return True

    @admin.display(description="status")
    def state(self, worker: WorkerProcess) -> SafeString:
        if not getattr(worker, "alive", False):
            return formats.status("failed", "not heard of")
        return formats.status("deleting", "stopping") if worker.stopping else formats.status("good", "alive")

    @admin.display(description="client tools")
    def clients(self, worker: WorkerProcess) -> str:
        majors = worker.client_majors if isinstance(worker.client_majors, list) else []
        return ", ".join(str(major) for major in majors) or formats.NOTHING

    @admin.display(description="started", ordering="started_at")
    def started(self, worker: WorkerProcess) -> SafeString | str:
        return formats.when(worker.started_at)

    @admin.display(description="last heard of", ordering="heartbeat_at")
    def seen(self, worker: WorkerProcess) -> SafeString | str:
        return formats.when(worker.heartbeat_at)
