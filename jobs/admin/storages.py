"""Storages: the instance's to look at, one's own to change."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet, Value
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.base import OwnedAdmin, account
from jobs.admin.deletion import Plan, confirmed
from jobs.admin.pages import step
from jobs.admin.storage_form import StorageForm
from jobs.artifacts import probe_storage
from jobs.models import BackupCopy, Database, Storage, Upload
from jobs.models.storage import Origin, StorageKind
from jobs.services import record
from jobs.sweeping import want_sweep

CHECKS = ("put", "get", "list", "delete")
FOLDER_ONLY = ["name", "kind", "origin", "folder", "last_test"]
S3_ONLY = ["name", "kind", "origin", "endpoint", "region", "bucket", "prefix", "last_test"]

KEYS = ["endpoint", "region", "bucket", "prefix", "access_key_id", "secret", "force_path_style"]


@admin.register(Storage)
class StorageAdmin(OwnedAdmin[Storage]):
    form = StorageForm
    list_display = ["name", "kind", "where", "origin", "last_test", "buttons"]
    readonly_fields = ["origin", "last_test"]
    actions = ["test"]

    def visible(self, request: HttpRequest, rows: QuerySet[Storage]) -> QuerySet[Storage]:
        """The instance's are everyone's to use; to test them and to read their errors is a superuser's."""
        if account(request).is_superuser:
            return rows.annotate(in_hand=Value(True))
        theirs = ExpressionWrapper(Q(user_id=request.user.pk, user__isnull=False), BooleanField())
        return rows.filter(Q(user__isnull=True) | Q(user_id=request.user.pk)).annotate(in_hand=theirs)

    def is_visible(self, request: HttpRequest, obj: Storage | None) -> bool:
        return obj is None or obj.user_id is None or super().is_visible(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Storage | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or _is_theirs(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Storage | None = None) -> bool:
        return self.has_change_permission(request, obj)

    def get_fields(self, request: HttpRequest, obj: Storage | None = None) -> list[Any]:
        """To look at, only what its kind has; never who the instance logs in as."""
        if obj is None or self.has_change_permission(request, obj):
            return self._editable(account(request) if obj is None else obj.user, is_new=obj is None)
        fields = FOLDER_ONLY if obj.kind == StorageKind.FOLDER else S3_ONLY
        hidden = set() if account(request).is_superuser else {"folder", "endpoint"}
        return [name for name in fields if name not in hidden]

    def _editable(self, owner: User | None, *, is_new: bool) -> list[str]:
        """A folder is on the workers' own machine: a superuser's to give."""
        kinds = [] if owner is not None and not owner.is_superuser else ["kind", "folder"]
        return ["name", *kinds, *KEYS, *([] if is_new else self.readonly_fields)]

    def get_form(
        self, request: HttpRequest, obj: Storage | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.owner = obj.user if obj is not None else account(request)
        return form

    def save_model(self, request: HttpRequest, obj: Storage, form: ModelForm[Storage], change: bool) -> None:
        assert isinstance(form, StorageForm)  # noqa: S101
        obj.user = form.owner
        form.apply(obj)
        obj.save()
        record(account(request), "change" if change else "add", obj)
        if not change or {"folder", *KEYS} & set(form.changed_data):
            # A wrong key is told at once. Saved all the same: the store may only be away.
            transaction.on_commit(lambda: self._test(request, self.find(request, obj.pk)))

    def response_post_save_add(self, request: HttpRequest, obj: Storage) -> HttpResponseRedirect:
        return redirect("admin:jobs_storage_change", obj.pk)

    # Columns

    @admin.display(description="where")
    def where(self, storage: Storage) -> str:
        if storage.kind == StorageKind.FOLDER:
            return storage.folder if getattr(storage, "in_hand", False) else "a folder of this instance"
        return f"{storage.bucket}/{storage.prefix}" if storage.prefix else storage.bucket

    @admin.display(description="last test", ordering="tested_at")
    def last_test(self, storage: Storage) -> SafeString:
        result = storage.test_result
        if not isinstance(result, dict):
            return SafeString("not tested")
        badges = ((formats.status(*_verdict(name, result.get(name))),) for name in CHECKS)
        readable = getattr(storage, "in_hand", False)
        problems = sorted({str(error) for error in result.values() if error and readable})
        return format_html(
            '<span class="checks">{}</span> {}{}',
            format_html_join(" ", "{}", badges),
            formats.when(storage.tested_at),
            format_html_join("", '<br><span class="problem">{}</span>', ((text,) for text in problems)),
        )

    @admin.display(description="", empty_value="")
    def buttons(self, storage: Storage) -> SafeString | str:
        if not getattr(storage, "in_hand", False):
            return ""
        return format_html(
            '<span class="row-buttons">'
            '<button class="button quiet" type="submit" formaction="{}">Test</button></span>',
            reverse("admin:jobs_storage_test", args=[storage.pk]),
        )

    # Pages

    @admin.action(description="Test")
    def test(self, request: HttpRequest, chosen: QuerySet[Storage]) -> None:
        for storage in chosen[:20]:
            self._test(request, storage)

    def get_urls(self) -> list[URLPattern]:
        return [
            step(self, "test", self.test_view),
            step(self, "sweep", self.sweep_view),
            *super().get_urls(),
        ]

    def test_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        storage = self.find(request, object_id)
        self._test(request, storage)
        return redirect("admin:jobs_storage_change", storage.pk)

    def sweep_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        storage: Any = self.find(request, object_id)
        if storage.in_hand:
            want_sweep(storage)
            messages.success(request, f"{storage.name}: a worker compares it within five minutes.")
        else:
            messages.error(request, f"{storage.name} belongs to this instance: a superuser can compare it.")
        return redirect("admin:jobs_storage_change", storage.pk)

    def _test(self, request: HttpRequest, storage: Any) -> None:
        if not storage.in_hand:
            messages.error(request, f"{storage.name} belongs to this instance: a superuser can test it.")
            return
        result = probe_storage(storage, by=account(request))
        failed = [name for name in CHECKS if result[name]]
        if not failed:
            messages.success(request, f"{storage.name}: put, get, list and delete work.")
        elif result["put"] or result["get"]:
            messages.error(request, f"{storage.name} cannot be used: {result['put'] or result['get']}")
        else:
            denied = " and ".join(failed)
            messages.warning(request, f"{storage.name}: good for backups, though {denied} does not work.")

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        storage = self.find(request, object_id)
        back = reverse("admin:jobs_storage_change", args=[storage.pk])
        plan = _deletion(storage, allowed=self.has_delete_permission(request, storage))

        def destroy() -> HttpResponseBase:
            record(account(request), "delete", storage)
            storage.delete()
            messages.success(request, f"{storage.name} is gone from pgbr; what lies in it is untouched.")
            return redirect("admin:jobs_storage_changelist")

        return confirmed(self, request, plan, destroy, back=back)


def _is_theirs(request: HttpRequest, storage: Storage) -> bool:
    return storage.origin == Origin.SAVED and (
        storage.user_id == request.user.pk or account(request).is_superuser
    )


def _verdict(name: str, error: object) -> tuple[str, str]:
    return ("failed", f"{name} fails") if error else ("completed", name)


def _schedules(storage: Storage) -> int:
    """Their tables are of a package that this one does not know."""
    links = (link for link in storage._meta.related_objects if link.name == "schedulestorage")
    return sum(link.related_model._default_manager.filter(storage=storage).count() for link in links)


def _deletion(storage: Storage, *, allowed: bool) -> Plan:
    counts = (
        (BackupCopy.objects.filter(storage=storage).count(), "backups lie in it: delete them first"),
        (Upload.objects.filter(storage=storage).count(), "uploads lie in it: delete them first"),
        (
            Database.objects.filter(storage=storage).count(),
            "databases send their backups to it: choose another",
        ),
        (_schedules(storage), "schedules send their backups to it: take it out of them first"),
    )
    blocked = [f"{count} {reason}." for count, reason in counts if count]
    if not allowed:
        blocked = ["It belongs to this instance and follows its configuration."]
    return Plan(
        title=f"Delete the storage {storage.name}",
        word=storage.name,
        lost=["The address and the keys as saved here."],
        kept=["The bucket or folder itself, with whatever is in it."],
        blocked=blocked,
    )
