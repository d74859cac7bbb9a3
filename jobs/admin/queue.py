"""The queue, to look at and to cancel from."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.base import ReadOnlyAdmin, account
from jobs.admin.pages import for_each, step
from jobs.models import QueuedJob, TimelineLine
from jobs.models.history import HISTORY
from jobs.services import cancel_job

SHOWN = {"pending": "waiting", "active": "running"}


@admin.register(QueuedJob)
class QueueAdmin(ReadOnlyAdmin[QueuedJob]):
    page_title = "Queue"
    list_display = ["state", "queue", "about", "created", "run_at_", "attempts", "stalls", "worker"]
    list_display_links = ["state", "queue", "about"]
    list_filter = ["queue", "status"]
    search_fields = ["id", "payload", "last_error"]
    ordering = ["-created_at"]
    actions = ["cancel"]

    @admin.display(description="status", ordering="status")
    def state(self, job: QueuedJob) -> SafeString:
        shown = "cancelling" if job.status == "active" and job.cancel_requested_at else SHOWN.get(job.status)
        return formats.status(job.status, shown)

    @admin.display(description="database")
    def about(self, job: QueuedJob) -> str:
        payload = job.payload if isinstance(job.payload, dict) else {}
        if job.queue == "migration":
            ends = (payload.get(f"{side}_database_name") or "a URL" for side in ("source", "target"))
            return " → ".join(map(str, ends))
        return str(payload.get("database_name") or "") or formats.NOTHING

    @admin.display(description="queued", ordering="created_at")
    def created(self, job: QueuedJob) -> SafeString | str:
        return formats.when(job.created_at)

    @admin.display(description="due", ordering="run_at")
    def run_at_(self, job: QueuedJob) -> SafeString | str:
        return formats.when(job.run_at) if job.status == "pending" else formats.NOTHING

    @admin.display(description="worker", ordering="locked_by")
    def worker(self, job: QueuedJob) -> str:
        return job.locked_by or formats.NOTHING

    @admin.action(description="Cancel")
    def cancel(self, request: HttpRequest, chosen: QuerySet[QueuedJob]) -> None:
        by = account(request)
        for_each(request, chosen, lambda job: cancel_job(job.pk, by=by), "cancelled")

    def get_urls(self) -> list[URLPattern]:
        return [step(self, "cancel", self.cancel_view), *super().get_urls()]

    def cancel_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        job = self.find(request, object_id)
        self.cancel(request, [job])  # type: ignore[arg-type]
        return redirect("admin:jobs_queuedjob_change", job.pk)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        job = context["original"]
        context |= {
            "job": job,
            "payload": _shown(job.payload),
            "about": self.about(job),
            "state": self.state(job),
            "timeline": TimelineLine.objects.filter(job_id=job.pk),
            "history": _history(job),
            "can_cancel": job.status in SHOWN,
            "title": f"{job.queue.capitalize()} of {self.about(job)}",
            "subtitle": "",
        }
        return super().render_change_form(request, context, *args, **kwargs)


def _shown(payload: Any) -> str:
    try:
        return json.dumps(payload, indent=2, ensure_ascii=False)
    except RecursionError:
        return json.dumps(None)


def _history(job: QueuedJob) -> str:
    """The page of its history row; "" before a worker has taken it."""
    model = HISTORY[job.queue]
    if not model.objects.filter(pk=job.pk).exists():
        return ""
    return reverse(f"admin:jobs_{model._meta.model_name}_change", args=[job.pk])
