"""What the histories of backups, restores and migrations share: their list, their page, cancel and re-run."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.base import ReadOnlyAdmin, account
from jobs.admin.pages import REFUSALS, for_each, step
from jobs.models import HistoryRow, QueuedJob, TimelineLine
from jobs.rerunning import rerun_job
from jobs.services import cancel_job, visible_to

Row = TypeVar("Row", bound=HistoryRow)

UNFINISHED = ("pending", "running")
IN_QUEUE = ("pending", "active")


class HistoryAdmin(ReadOnlyAdmin[Row]):
    """A job that no worker has taken yet has no row here: it is shown above the list, from the queue."""

    ordering = ["-created_at"]
    names: ClassVar[str] = "database_name"  # the column that says what a job is about

    # Columns

    @admin.display(description="status", ordering="status")
    def state(self, row: Row) -> SafeString:
        share = (row.progress or {}).get("share") if row.status == "running" else None
        return formats.status(row.status, f"running {share:.0%}" if isinstance(share, float) else None)

    @admin.display(description="duration")
    def took(self, row: Row) -> str:
        return formats.between(row.started_at, row.completed_at)

    @admin.display(description="started", ordering="started_at")
    def started(self, row: Row) -> SafeString | str:
        return formats.when(row.started_at)

    # Actions on the list

    @admin.action(description="Cancel")
    def cancel(self, request: HttpRequest, chosen: QuerySet[Row]) -> None:
        by = account(request)
        for_each(request, chosen, lambda row: cancel_job(row.pk, by=by), "cancelled", names=self.names)

    @admin.action(description="Re-run")
    def rerun(self, request: HttpRequest, chosen: QuerySet[Row]) -> None:
        by = account(request)
        for_each(request, chosen, lambda row: rerun_job(row.pk, by=by), "queued again", names=self.names)

    # Pages

    def get_urls(self) -> list[URLPattern]:
        return [
            step(self, "cancel", self.cancel_view),
            step(self, "rerun", self.rerun_view),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        return super().get_queryset(request).defer("log")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        started = self.model._default_manager.filter(pk=OuterRef("pk"))
        waiting = self._queued().filter(~Exists(started), status__in=IN_QUEUE)
        waiting = visible_to(account(request), waiting).order_by("run_at", "created_at")
        shown = {"waiting": waiting[:10], "waiting_count": waiting.count()}
        return super().changelist_view(request, shown | (extra_context or {}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        if self.get_object(request, object_id) is None and self._waits(request, object_id):
            return redirect("admin:jobs_queuedjob_change", object_id)
        return super().change_view(request, object_id, form_url, extra_context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        row = context["original"]
        context |= shared_context(row) | self.details(request, row)
        kind = str(self.opts.verbose_name).capitalize()
        context |= {"title": f"{kind} of {self.about(row)}", "subtitle": ""}
        return super().render_change_form(request, context, *args, **kwargs)

    def details(self, request: HttpRequest, row: Row) -> dict[str, Any]:
        """What the page of this kind of job shows beyond what all share."""
        return {}

    def about(self, row: Row) -> str:
        return str(getattr(row, self.names))

    def cancel_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        row = self.find(request, object_id)
        self.cancel(request, [row])  # type: ignore[arg-type]
        return redirect(self.page_of, row.pk)

    def rerun_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        row = self.find(request, object_id)
        try:
            rerun_job(row.pk, by=account(request))
        except REFUSALS as error:
            messages.error(request, str(error))
            return redirect(self.page_of, row.pk)
        kind = self.opts.verbose_name
        messages.success(request, f"A {kind} of {self.about(row)} is queued with the same options.")
        return redirect(self.list_of)

    @property
    def list_of(self) -> str:
        return f"admin:jobs_{self.opts.model_name}_changelist"

    @property
    def page_of(self) -> str:
        return f"admin:jobs_{self.opts.model_name}_change"

    def _queued(self) -> QuerySet[QueuedJob]:
        return QueuedJob.objects.filter(queue=self.model.queue)

    def _waits(self, request: HttpRequest, object_id: str) -> bool:
        try:
            jobs = self._queued().filter(pk=UUID(object_id))
        except ValueError:
            return False
        return visible_to(account(request), jobs).exists()


def shared_context(row: HistoryRow) -> dict[str, Any]:
    job = QueuedJob.objects.filter(pk=row.pk).first()
    return {
        "row": row,
        "job": job,
        "timeline": TimelineLine.objects.filter(job_id=row.pk),
        "unfinished": row.status in UNFINISHED,
        "can_cancel": job is not None and job.status in IN_QUEUE,
    }
