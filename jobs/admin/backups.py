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

from jobs import trash
from jobs.admin import backup_detail, copies, formats
from jobs.admin.base import account
from jobs.admin.browse import browse
from jobs.admin.filters import DatabaseFilter, DateFilter, ScheduleFilter
from jobs.admin.history import HistoryAdmin
from jobs.admin.pages import REFUSALS, chosen_ids, for_each, step
from jobs.admin.restore_wizard import restore_row
from jobs.admin.trashing import TrashFilter, delete_for_good, delete_into_trash
from jobs.models import BackupCopy, BackupJob

LIST = "admin:jobs_backupjob_changelist"
DETAIL = "admin:jobs_backupjob_change"


@admin.register(BackupJob)
class BackupAdmin(HistoryAdmin[BackupJob]):
    list_display = ["state", "about", "stored", "took", "started", "place", "buttons"]
    list_display_links = ["state", "about"]
    list_filter = [
        "status",
        DatabaseFilter,
        ("created_at", DateFilter),
        "pinned",
        TrashFilter,
        ScheduleFilter,
    ]
    search_fields = ["id", "database_name", "storage_key", "error"]
    search_help_text = "Part of an id, a database's name, an object's key or an error."
    actions = ["cancel", "rerun", "pin", "unpin", "take_back", "delete_with_artifact", "delete_for_good"]

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
        leaves = trash.leaves_at(backup)
        leaving = [f"in the trash until {leaves:%Y-%m-%d}"] if leaves else []
        return ", ".join(names + pinned + leaving) or formats.NOTHING

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
        by = account(request)
        for_each(request, chosen, lambda row: trash.pin(row, True, by=by), "pinned", what="backup")

    @admin.action(description="Unpin")
    def unpin(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> None:
        by = account(request)
        for_each(request, chosen, lambda row: trash.pin(row, False, by=by), "unpinned", what="backup")

    @admin.action(description="Take back from the trash (and pin)")
    def take_back(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> None:
        for_each(request, chosen, partial(trash.take_back, by=account(request)), "taken back", what="backup")

    @admin.action(description="Delete …")
    def delete_with_artifact(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> HttpResponseBase:
        return redirect(reverse("admin:jobs_backupjob_delete_many") + f"?ids={_ids(chosen)}")

    @admin.action(description="Delete for good …")
    def delete_for_good(self, request: HttpRequest, chosen: QuerySet[BackupJob]) -> HttpResponseBase:
        return redirect(reverse("admin:jobs_backupjob_destroy_many") + f"?ids={_ids(chosen)}")

    # Pages

    def get_urls(self) -> list[URLPattern]:
        many = self.admin_site.admin_view(self.delete_many)
        destroy = self.admin_site.admin_view(self.destroy_many)
        return [
            path("delete/", many, name="jobs_backupjob_delete_many"),
            path("delete-for-good/", destroy, name="jobs_backupjob_destroy_many"),
            step(self, "pin", self.pin_view),
            step(self, "take-back", self.take_back_view),
            step(self, "delete-for-good", self.destroy_view, post=False),
            step(self, "copy", self.copy_view),
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
        try:
            trash.pin(backup, wanted, by=account(request))
        except REFUSALS as error:
            messages.error(request, str(error))
        else:
            messages.success(request, "Pinned: retention keeps it." if wanted else "Unpinned.")
        return redirect(DETAIL, backup.pk)

    def copy_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        """Try to make the copy `copy` now."""
        backup = self.find(request, object_id)
        copies.try_one(request, backup)
        return redirect(DETAIL, backup.pk)

    def take_back_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        backup = self.find(request, object_id)
        try:
            pinned = trash.take_back(backup, by=account(request))
        except REFUSALS as error:
            messages.error(request, str(error))
        else:
            why = " and pinned, so that retention does not take it again" if pinned else ""
            messages.success(request, f"Taken back{why}.")
        return redirect(DETAIL, backup.pk)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        backup = self.find(request, object_id)
        return delete_into_trash(self, request, [backup], back=reverse(DETAIL, args=[backup.pk]))

    def delete_many(self, request: HttpRequest) -> HttpResponseBase:
        return delete_into_trash(self, request, self._chosen(request), back=reverse(LIST))

    def destroy_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        backup = self.find(request, object_id)
        return delete_for_good(self, request, [backup], back=reverse(DETAIL, args=[backup.pk]))

    def destroy_many(self, request: HttpRequest) -> HttpResponseBase:
        return delete_for_good(self, request, self._chosen(request), back=reverse(LIST))

    def _chosen(self, request: HttpRequest) -> list[BackupJob]:
        wanted = set(chosen_ids(request))
        backups = list(self.get_queryset(request).filter(pk__in=wanted))
        if not wanted or len(backups) != len(wanted):
            raise Http404("Not all of these backups exist.")
        return backups


def _ids(chosen: QuerySet[BackupJob]) -> str:
    return ",".join(str(pk) for pk in chosen.values_list("pk", flat=True))
