"""The steps on a database's pages: back it up now, test its connection."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.backup_form import BackupForm
from jobs.admin.base import OwnedAdmin, account
from jobs.admin.option_form import initial_values
from jobs.admin.overview import good_backups
from jobs.admin.pages import REFUSALS, chosen_ids, page
from jobs.databases import check
from jobs.models import BackupJob, Database
from jobs.pgtools.flags import FIELDS
from jobs.services import enqueue_backup, record, visible_to


def backup_many(owner: OwnedAdmin[Database], request: HttpRequest) -> HttpResponseBase:
    """`?ids=a,b`: the form for the chosen databases. One that is not the user's makes it a 404."""
    wanted = set(chosen_ids(request))
    databases = list(owner.get_queryset(request).filter(pk__in=wanted).select_related("user"))
    if not wanted or len(databases) != len(wanted):
        raise Http404("Not all of these databases exist.")
    return backup_now(owner, request, databases)


def backup_now(
    owner: OwnedAdmin[Database], request: HttpRequest, databases: list[Database]
) -> HttpResponseBase:
    if request.method == "POST":
        form = BackupForm(databases, request.POST)
        if form.is_valid():
            return _enqueue(request, databases, form.cleaned_data)
    else:
        form = BackupForm(databases, initial=_flags_of(request))
    names = ", ".join(database.name for database in databases[:5])
    more = f" and {len(databases) - 5} more" if len(databases) > 5 else ""
    response = page(
        owner, request, "backup_now.html", f"Back up {names}{more}", form=form, forms={"options": form}
    )
    response.status_code = 400 if form.errors else 200
    return response


@transaction.atomic
def _enqueue(request: HttpRequest, databases: list[Database], chosen: dict[str, Any]) -> HttpResponseBase:
    by = account(request)
    for database in databases:
        job = enqueue_backup(database, chosen["given"], by=by, storage=chosen["storage"])
        messages.success(request, queued(f"A backup of {database.name} is queued.", job))
    return redirect("admin:jobs_backupjob_changelist")


def queued(words: str, job: UUID) -> SafeString:
    """With the way to a backup that no list has yet."""
    return format_html(
        '{} <a href="{}">Follow it</a>', words, reverse("admin:jobs_backupjob_change", args=[job])
    )


def restore_newest(request: HttpRequest, database: Database) -> HttpResponseBase:
    """On to the page that restores its newest good backup into it, already checked."""
    newest = good_backups(BackupJob.objects.filter(database=database)).order_by("-completed_at").first()
    if newest is None:
        messages.error(request, f"{database.name} has no good backup yet.")
        return redirect("admin:jobs_database_change", database.pk)
    return redirect(reverse("admin:jobs_backupjob_restore", args=[newest.pk]) + "?check=1")


def _flags_of(request: HttpRequest) -> dict[str, Any]:
    """`?like=<id>`: the options of an earlier backup."""
    try:
        like = UUID(request.GET.get("like", ""))
    except ValueError:
        return {}
    earlier = visible_to(account(request), BackupJob.objects.filter(pk=like)).first()
    return initial_values(FIELDS, earlier.flags) if earlier else {}


def test_connection(request: HttpRequest, database: Database) -> HttpResponseBase:
    try:
        facts = check(database)
    except REFUSALS as error:
        messages.error(request, f"{database.name}: {error}")
    else:
        _tell(request, database, facts)
    record(account(request), "test", database)
    return redirect(reverse("admin:jobs_database_change", args=[database.pk]))


def _tell(request: HttpRequest, database: Database, facts: dict[str, Any]) -> None:
    summary = format_html(
        "{}: connected. PostgreSQL {}, {}, {}.",
        database.name,
        facts.get("version", "?"),
        formats.size(facts.get("size_bytes")),
        "a replica" if facts.get("in_recovery") else "the primary",
    )
    if facts.get("missing_privileges"):
        messages.warning(request, f"{summary} A full backup would lack some privileges, listed below.")
    else:
        messages.success(request, summary)
