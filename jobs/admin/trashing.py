"""The pages that delete backups: into the trash, for good, or all of a database's."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from jobs import deleting, trash
from jobs.admin import backup_detail, formats
from jobs.admin.base import account
from jobs.admin.deletion import Plan, confirmed
from jobs.admin.pages import for_each
from jobs.models import BackupCopy, BackupJob
from jobs.services import ServiceError

LIST = "admin:jobs_backupjob_changelist"
IN_TRASH, EVERYTHING = "yes", "all"
REQUEST_SECONDS = 20.0  # of deleting while somebody waits
SHOWN = 20  # of what is deleted, one by one


class TrashFilter(admin.SimpleListFilter):
    """What people deleted is out of sight until it is asked for."""

    title = "trash"
    parameter_name = "trash"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(IN_TRASH, "in the trash"), (EVERYTHING, "all")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == EVERYTHING:
            return queryset
        return queryset.filter(trash.in_trash() if self.value() == IN_TRASH else Q(trashed_at=None))

    def choices(self, changelist: Any) -> Iterator[Any]:
        found = super().choices(changelist)
        yield next(found) | {"display": "not in the trash"}
        yield from found


def delete_into_trash(
    owner: ModelAdmin[Any], request: HttpRequest, backups: list[BackupJob], *, back: str, reason: str = ""
) -> HttpResponseBase:
    """Where there is a trash and they are not in it already."""
    if settings.TRASH_DAYS == 0 or all(backup.trashed_at for backup in backups):
        return delete_for_good(owner, request, backups, back=back)

    def destroy() -> HttpResponseBase:
        done = f"moved to the trash for {_days()}"
        put = partial(trash.put, by=account(request), reason=reason)
        if for_each(request, backups, put, done, what="backup"):
            way = format_html('<a href="{}?trash={}">To the trash</a>', reverse(LIST), IN_TRASH)
            messages.info(request, way)
        return redirect(LIST)

    return confirmed(owner, request, _into_trash(backups), destroy, back=back)


def delete_for_good(
    owner: ModelAdmin[Any], request: HttpRequest, backups: list[BackupJob], *, back: str
) -> HttpResponseBase:
    def destroy() -> HttpResponseBase:
        act = partial(_destroy, account(request), time.monotonic() + REQUEST_SECONDS, set())
        for_each(request, backups, act, "deleted for good", what="backup")
        return redirect(LIST)

    return confirmed(owner, request, _for_good(backups), destroy, back=back)


def wipe(owner: ModelAdmin[Any], request: HttpRequest, database: Any, *, back: str) -> HttpResponseBase:
    """All backups of a database but those that are pinned, not ended or in the trash already."""
    mine = BackupJob.objects.filter(database=database, trashed_at=None).defer("log", "manifest")
    backups = mine.filter(pinned=False, status__in=deleting.ENDED).prefetch_related("copies__storage")
    reason = f"{account(request).get_username()} deleted all backups of {database.name}."
    return delete_into_trash(owner, request, list(backups.order_by("-created_at")), back=back, reason=reason)


def _destroy(by: User, until: float, away: set[UUID], backup: BackupJob) -> None:
    """What cannot be deleted while somebody waits is left to the workers."""
    seconds = max(0.0, until - time.monotonic())
    if not trash.for_good(backup, by=by, seconds=seconds, away=away):
        raise ServiceError(_why_not(backup))


def _why_not(backup: BackupJob) -> str:
    for copy in BackupCopy.objects.filter(backup_id=backup.pk).select_related("storage"):
        if lock := formats.lock(copy.locked_until):
            return f"Its copy in {copy.storage.name!r} is {lock}; for so long it stays in the trash."
        if copy.error:
            return (
                f"The copy in {copy.storage.name!r} could not be deleted, which is tried again: {copy.error}"
            )
    return "It is being deleted."


def _into_trash(backups: list[BackupJob]) -> Plan:
    return Plan(
        **_common(backups),
        steps=[
            f"It waits in the trash for {_days()}. For so long it can be taken back, restored, downloaded.",
            "Then it is deleted for good.",
        ],
        purpose="move it to the trash",
    )


def _for_good(backups: list[BackupJob]) -> Plan:
    plan = Plan(**_common(backups), steps=["It is deleted at once, and cannot be taken back."])
    wanted = deleting.wanted_by_restores([backup.pk for backup in backups])
    reasons = [
        f"{backup_detail.name(each)}: a restore from it waits or runs."
        for each in backups
        if each.pk in wanted
    ]
    return replace(plan, blocked=plan.blocked + reasons)


def _common(backups: list[BackupJob]) -> dict[str, Any]:
    names = {backup.database_name for backup in backups}
    only = names.pop() if len(names) == 1 else ""
    what = "1 backup" if len(backups) == 1 else f"{len(backups)} backups"
    lost = [line for backup in backups[:SHOWN] for line in backup_detail.losses(backup)]
    more = len(backups) - SHOWN
    return {
        "title": f"Delete {what}" + (f" of {only}" if only else ""),
        "word": only or f"delete {what}",
        "lost": lost + ([f"{more} more."] if more > 0 else []),
        "kept": ["Other backups stay, and the databases are not touched."],
        "blocked": backup_detail.undeletable(backups) or ([] if backups else ["There is none to delete."]),
    }


def _days() -> str:
    return "a day" if settings.TRASH_DAYS == 1 else f"{settings.TRASH_DAYS} days"
