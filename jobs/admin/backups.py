"""The history of backups: look, download, cancel, re-run, pin, delete with the artifact."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin import backup_detail, formats
from jobs.admin.base import account
from jobs.admin.browse import browse
from jobs.admin.deletion import Plan, confirmed
from jobs.admin.filters import DatabaseFilter, DateFilter, ScheduleFilter
from jobs.admin.history import HistoryAdmin
from jobs.admin.pages import chosen_ids, for_each, step
from jobs.admin.restore_wizard import restore_row
from jobs.artifacts import delete_backup
from jobs.models import BackupCopy, BackupJob
from jobs.services import record

LIST = "admin:jobs_backupjob_changelist"
DETAIL = "admin:jobs_backupjob_change"


@admin.register(BackupJob)
class BackupAdmin(HistoryAdmin[BackupJob]):
    list_display = ["state", "about", "stored", "took", "started", "place", "buttons"]
    list_display_links = ["state", "about"]
    list_filter = ["status", DatabaseFilter, ("created_at", DateFilter), "pinned", ScheduleFilter]
    search_fields = ["id", "database_name", "storage_key", "error"]
    search_help_text = "Part of an id, a database's name, an object's key or an error."
    actions = ["cancel", "rerun", "pin", "unpin", "delete_with_artifact"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[BackupJob]:
        copies = Prefetch("copies", BackupCopy.objects.select_related("storage").order_by("created_at"))
        return super().get_queryset(request).defer("log", "manifest").prefetch_related(copies)

    # Columns

    @admin.display(description="database", ordering="database_name")
    def about(self, row: BackupJob) -> str:
        return row.database_name

    @admin.display(description="size", ordering="size")
    def stored(self, backup: BackupJob) -> str:
        return formats.size(backup.size)

    @admin.display(description="storage")
    def place(self, backup: BackupJob) -> str:
        names = [copy.storage.name for copy in backup.copies.all() if copy.state == "good"]
        pinned = ["pinned"] if backup.pinned else []
        return ", ".join(names + pinned) or formats.NOTHING

    @admin.display(description="", empty_value="")
    def buttons(self, backup: BackupJob) -> SafeString | str:
        if not backup_detail.can_download(backup):
            return ""
        return format_html(
            '<span class="row-buttons"><a class="button quiet" href="{}">Restore …</a>'
            '<a class="button quiet" href="{}">Download</a></span>',
            reverse("admin:jobs_backupjob_restore", args=[backup.pk]),
            reverse("download-backup", args=[backup.pk]),
        )

    # Actions on the list

    @admin.action(description="Pin (retention keeps it)")
    def pin(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> None:
        for_each(request, chosen, lambda row: set_pinned(request, row, True), "pinned")

    @admin.action(description="Unpin")
    def unpin(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> None:
        for_each(request, chosen, lambda row: set_pinned(request, row, False), "unpinned")

    @admin.action(description="Delete with artifact …")
    def delete_with_artifact(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> HttpResponseBase:
        ids = ",".join(str(pk) for pk in chosen.values_list("pk", flat=True))
        return redirect(reverse("admin:jobs_backupjob_delete_many") + f"?ids={ids}")

    # Pages

    def get_urls(self) -> list[URLPattern]:
        many = self.admin_site.admin_view(self.delete_many)
        return [
            path("delete/", many, name="jobs_backupjob_delete_many"),
            step(self, "pin", self.pin_view),
            step(self, "restore", partial(restore_row, self), post=False),
            step(self, "contents", partial(browse, self), post=False),
            *super().get_urls(),
        ]

    def details(self, request: HttpRequest, row: BackupJob) -> dict[str, Any]:
        return backup_detail.context(row)

    def pin_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        """Pins, or unpins with `pinned=no`."""
        backup = self.find(request, object_id)
        wanted = request.POST.get("pinned") != "no"
        set_pinned(request, backup, wanted)
        messages.success(request, "Pinned: retention keeps it." if wanted else "Unpinned.")
        return redirect(DETAIL, backup.pk)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        backup = self.find(request, object_id)
        return self._delete(request, [backup], back=reverse(DETAIL, args=[backup.pk]))

    def delete_many(self, request: HttpRequest) -> HttpResponseBase:
        wanted = set(chosen_ids(request))
        backups = list(self.get_queryset(request).filter(pk__in=wanted))
        if not wanted or len(backups) != len(wanted):
            raise Http404("Not all of these backups exist.")
        return self._delete(request, backups, back=reverse(LIST))

    def _delete(self, request: HttpRequest, backups: list[BackupJob], *, back: str) -> HttpResponseBase:
        def destroy() -> HttpResponseBase:
            for_each(request, backups, partial(delete_backup, by=account(request)), "deleted")
            return redirect(LIST)

        return confirmed(self, request, _deletion(backups), destroy, back=back)


def set_pinned(request: HttpRequest, backup: BackupJob, pinned: bool) -> None:
    BackupJob.objects.filter(pk=backup.pk).update(pinned=pinned)
    record(account(request), "pin" if pinned else "unpin", backup, database=backup.database_name)


def _deletion(backups: list[BackupJob]) -> Plan:
    names = {backup.database_name for backup in backups}
    only = names.pop() if len(names) == 1 else ""
    what = "1 backup" if len(backups) == 1 else f"{len(backups)} backups"
    return Plan(
        title=f"Delete {what}" + (f" of {only}" if only else ""),
        word=only or f"delete {what}",
        lost=[line for backup in backups for line in backup_detail.losses(backup)],
        kept=["Other backups stay, and the databases are not touched."],
        blocked=[reason for backup in backups if (reason := backup_detail.undeletable(backup))],
    )
