"""Databases in the admin: register, test, back up."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin import database_actions, discovery, formats, watch_form
from jobs.admin.base import OwnedAdmin, account
from jobs.admin.database_form import DatabaseForm
from jobs.admin.deletion import Plan, confirmed
from jobs.admin.overview import good_backups, with_backups
from jobs.admin.pages import step
from jobs.admin.trashing import wipe
from jobs.crypto import CannotDecrypt
from jobs.models import BackupJob, Database, QueuedJob
from jobs.pgtools.errors import InvalidConninfo
from jobs.services import record
from jobs.targets import conninfo_for

CERTIFICATES: list[Any] = ["ca_certificate", "client_certificate", "client_key"]
CONNECTION = {"url", "sslmode", *CERTIFICATES}


@admin.register(Database)
class DatabaseAdmin(OwnedAdmin[Database]):
    form = DatabaseForm
    list_display = ["name", "server", "last_good_backup", "protection", "buttons"]
    search_fields = ["name"]
    actions = ["back_up_now", "test_connections"]
    fieldsets = [
        (None, {"fields": ["name", "url", "sslmode"]}),
        ("Certificates", {"fields": CERTIFICATES, "classes": ["collapse"]}),
        ("Backups", {"fields": ["storage", "protected"]}),
        ("Limits", {"fields": ["max_minutes", "max_rate", "max_parallel"], "classes": ["collapse"]}),
        ("Whole server", {"fields": watch_form.FIELDS, "classes": ["collapse"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Database]:
        return with_backups(super().get_queryset(request))

    def get_form(
        self, request: HttpRequest, obj: Database | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.owner = obj.user if obj is not None else account(request)
        return form

    def save_model(
        self, request: HttpRequest, obj: Database, form: ModelForm[Database], change: bool
    ) -> None:
        assert isinstance(form, DatabaseForm)  # noqa: S101
        obj.user = form.owner
        form.apply(obj)
        # What workers write (facts, checked_at) stays theirs, unless it speaks of another server now.
        obj.save(update_fields=form.columns() if change else None)
        record(account(request), "change" if change else "add", obj)
        if CONNECTION & set(form.changed_data):
            # A wrong password is told at once. Saved all the same: the server may only be away.
            transaction.on_commit(partial(database_actions.test_connection, request, obj))

    def response_post_save_add(self, request: HttpRequest, obj: Database) -> HttpResponseRedirect:
        """Its page has what comes next: a backup, a schedule, the others on its server."""
        return redirect("admin:jobs_database_change", obj.pk)

    # Columns

    @admin.display(description="server", ordering="name")
    def server(self, database: Database) -> SafeString | str:
        try:
            found = conninfo_for(database)
        except (CannotDecrypt, InvalidConninfo) as error:
            return format_html('<span class="problem">{}</span>', str(error))
        facts = database.facts or {}
        version = str(facts.get("version", "")).split(" ")[0]
        seen = (
            f"PostgreSQL {version}, {formats.size(facts.get('size_bytes'))}"
            if version
            else "not looked at yet"
        )
        return format_html(
            '<span title="{}">{}/{}</span><br><span class="quiet-text">{}</span>',
            found.masked(),
            found.host_label,
            found.dbname,
            seen,
        )

    @admin.display(description="last good backup", ordering="good_at")
    def last_good_backup(self, database: Any) -> SafeString:
        failed = _last_run_failed(database)
        if database.good_at is None:
            return format_html('<span class="problem">none yet</span>{}', failed)
        url = reverse("admin:jobs_backupjob_change", args=[database.good_id])
        size = formats.size(database.good_size)
        return format_html(
            '<a href="{}">{}</a>, <span>{}</span>{}', url, formats.when(database.good_at), size, failed
        )

    @admin.display(description="protected", ordering="protected")
    def protection(self, database: Database) -> str:
        return "yes" if database.protected else formats.NOTHING

    @admin.display(description="")
    def buttons(self, database: Database) -> SafeString:
        return format_html(
            '<span class="row-buttons"><a class="button" href="{}">Back up now</a>{}'
            '<button class="button quiet" type="submit" formaction="{}">Test</button></span>',
            reverse("admin:jobs_database_backup", args=[database.pk]),
            _restore_button(database),
            reverse("admin:jobs_database_test", args=[database.pk]),
        )

    # Actions and pages

    @admin.action(description="Back up now")
    def back_up_now(self, request: HttpRequest, chosen: QuerySet[Database]) -> HttpResponseBase:
        ids = ",".join(str(pk) for pk in chosen.values_list("pk", flat=True))
        return redirect(reverse("admin:jobs_database_backup_many") + f"?ids={ids}")

    @admin.action(description="Test connection")
    def test_connections(self, request: HttpRequest, chosen: QuerySet[Database]) -> None:
        for database in chosen.select_related("user")[:20]:
            database_actions.test_connection(request, database)

    def get_urls(self) -> list[URLPattern]:
        many = self.admin_site.admin_view(self.backup_many)
        return [
            path("backup/", many, name="jobs_database_backup_many"),
            step(self, "backup", self.backup_view, post=False),
            step(self, "restore", self.restore_view, post=False),
            step(self, "test", self.test_view),
            step(self, "discover", self.discover_view, post=False),
            step(self, "wipe", self.wipe_view, post=False),
            *super().get_urls(),
        ]

    def backup_many(self, request: HttpRequest) -> HttpResponseBase:
        return database_actions.backup_many(self, request)

    def backup_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return database_actions.backup_now(self, request, [self.find(request, object_id)])

    def restore_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return database_actions.restore_newest(request, self.find(request, object_id))

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return database_actions.test_connection(request, self.find(request, object_id))

    def wipe_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        back = reverse("admin:jobs_database_change", args=[object_id])
        return wipe(self, request, self.find(request, object_id), back=back)

    def discover_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return discovery.discover(self, request, self.find(request, object_id))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        obj = context["original"]
        if obj is not None:
            recent = BackupJob.objects.filter(database=obj, trashed_at=None).order_by("-created_at")[:5]
            waiting = QueuedJob.objects.filter(payload__database_id=str(obj.pk), status="pending")
            context |= {"facts": obj.facts or {}, "recent": recent, "waiting": waiting.count()}
        return super().render_change_form(request, context, *args, **kwargs)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        database = self.find(request, object_id)

        def destroy() -> HttpResponseBase:
            record(account(request), "delete", database)
            database.delete()
            messages.success(request, f"{database.name} is not registered any more. Its backups stay.")
            return redirect("admin:jobs_database_changelist")

        back = reverse("admin:jobs_database_change", args=[database.pk])
        return confirmed(self, request, _deletion(database), destroy, back=back)


def _restore_button(database: Any) -> SafeString | str:
    if database.good_id is None:
        return ""
    url = reverse("admin:jobs_database_restore", args=[database.pk])
    return format_html('<a class="button quiet" href="{}">Restore …</a>', url)


def _last_run_failed(database: Any) -> SafeString | str:
    if database.run_status != "failed" or database.run_id == database.good_id:
        return ""
    url = reverse("admin:jobs_backupjob_change", args=[database.run_id])
    return format_html('<br><a href="{}">{}</a>', url, formats.status("failed", "last run failed"))


def _deletion(database: Database) -> Plan:
    backups = good_backups(BackupJob.objects.filter(database=database))
    total = formats.size(backups.aggregate(total=Sum("size"))["total"] or 0)
    return Plan(
        title=f"Delete the database {database.name}",
        word=database.name,
        lost=[
            "The connection: its URL, certificates and limits as saved here.",
            "Its schedules: no further backup is made on its own.",
        ],
        kept=[
            f"Its backups stay: {backups.count()} good ones, {total}, with their history.",
            "The database itself, on its server, is not touched.",
        ],
    )
