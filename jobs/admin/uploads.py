"""Uploaded files: bring one, look at what it holds, restore from it, keep or delete it."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs import uploads
from jobs.admin import formats
from jobs.admin.base import ReadOnlyAdmin, account, may_enter
from jobs.admin.browse import browse
from jobs.admin.deletion import Plan, confirmed
from jobs.admin.filters import DateFilter
from jobs.admin.pages import REFUSALS, chosen_ids, for_each, page, step
from jobs.admin.restore_wizard import restore_row
from jobs.models import Upload

LIST = "admin:jobs_upload_changelist"
DETAIL = "admin:jobs_upload_change"
SHOWN = {"writing": "uploading", "good": "complete"}
LONGEST_WORD = 60  # to type


@admin.register(Upload)
class UploadAdmin(ReadOnlyAdmin[Upload]):
    list_display = ["state_", "name", "content", "stored", "came", "kept", "buttons"]
    list_display_links = ["state_", "name"]
    list_filter = ["state", ("created_at", DateFilter)]
    search_fields = ["name", "sha256"]
    search_help_text = "Part of a name or of a SHA-256."
    ordering = ["-created_at"]
    actions = ["keep", "delete_uploads"]

    class Media:
        css = {"all": ["pgbr/upload.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    # Columns

    @admin.display(description="status", ordering="state")
    def state_(self, upload: Upload) -> SafeString:
        return formats.status(upload.state, SHOWN.get(upload.state))

    @admin.display(description="contents")
    def content(self, upload: Upload) -> str:
        return in_words(upload) or formats.NOTHING

    @admin.display(description="size", ordering="size")
    def stored(self, upload: Upload) -> str:
        return formats.size(upload.size)

    @admin.display(description="uploaded", ordering="created_at")
    def came(self, upload: Upload) -> SafeString | str:
        return formats.when(upload.created_at)

    @admin.display(description="deletion", ordering="keep_until")
    def kept(self, upload: Upload) -> SafeString | str:
        if upload.state != "good":
            return formats.NOTHING
        return formats.when(upload.keep_until) if upload.keep_until else "kept"

    @admin.display(description="", empty_value="")
    def buttons(self, upload: Upload) -> SafeString | str:
        url = restore_url(upload.pk) if upload.state == "good" else None
        if url is None:
            return ""
        link = '<span class="row-buttons"><a class="button quiet" href="{}">Restore …</a></span>'
        return format_html(link, url)

    # Actions on the list

    @admin.action(description="Keep until deleted")
    def keep(self, request: HttpRequest, chosen: QuerySet[Upload]) -> None:
        for_each(request, chosen, partial(uploads.keep, by=account(request)), "kept", what="upload")

    @admin.action(description="Delete …")
    def delete_uploads(self, request: HttpRequest, chosen: QuerySet[Upload]) -> HttpResponseBase:
        ids = ",".join(str(pk) for pk in chosen.values_list("pk", flat=True))
        return redirect(reverse("admin:jobs_upload_delete_many") + f"?ids={ids}")

    # Pages

    def get_urls(self) -> list[URLPattern]:
        many = self.admin_site.admin_view(self.delete_many)
        return [
            path("delete/", many, name="jobs_upload_delete_many"),
            step(self, "keep", self.keep_view),
            step(self, "restore", partial(restore_row, self), post=False),
            step(self, "contents", partial(browse, self), post=False),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        """The page that sends a file to /api/uploads; it knows only then which pages its upload has."""
        nobody = UUID(int=0)
        return page(
            self, request, "upload/add.html", "Upload a dump",
            api=reverse("uploads"),
            address=request.build_absolute_uri(reverse("uploads")),
            most=settings.UPLOAD_MAX_BYTES,
            nobody=nobody,
            detail=reverse(DETAIL, args=[nobody]),
            restore=restore_url(nobody),
        )  # fmt: skip

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        upload = context["original"]
        context |= {
            "upload": upload,
            "state": self.state_(upload),
            "words": in_words(upload),
            "complete": upload.state == "good",
            "restore": restore_url(upload.pk),
            "title": upload.name,
            "subtitle": "",
        }
        return super().render_change_form(request, context, *args, **kwargs)

    def keep_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        upload = self.find(request, object_id)
        try:
            uploads.keep(upload, by=account(request))
        except REFUSALS as error:
            messages.error(request, str(error))
        else:
            messages.success(request, f"{upload.name} is kept until you delete it.")
        return redirect(DETAIL, upload.pk)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        upload = self.find(request, object_id)
        return self._delete(request, [upload], back=reverse(DETAIL, args=[upload.pk]))

    def delete_many(self, request: HttpRequest) -> HttpResponseBase:
        wanted = set(chosen_ids(request))
        found = list(self.get_queryset(request).filter(pk__in=wanted))
        if not wanted or len(found) != len(wanted):
            raise Http404("Not all of these uploads exist.")
        return self._delete(request, found, back=reverse(LIST))

    def _delete(self, request: HttpRequest, found: list[Upload], *, back: str) -> HttpResponseBase:
        def destroy() -> HttpResponseBase:
            for_each(request, found, partial(uploads.delete, by=account(request)), "deleted", what="upload")
            return redirect(LIST)

        return confirmed(self, request, _deletion(found), destroy, back=back)


def in_words(upload: Upload) -> str:
    """What it holds; empty as long as nobody has looked."""
    return str(upload.facts.get("in_words", "")) if isinstance(upload.facts, dict) else ""


def restore_url(upload_id: UUID) -> str | None:
    """None where nothing restores from uploads."""
    try:
        return reverse("admin:jobs_upload_restore", args=[upload_id])
    except NoReverseMatch:
        return None


def _deletion(found: list[Upload]) -> Plan:
    what = "1 upload" if len(found) == 1 else f"{len(found)} uploads"
    only = found[0].name if len(found) == 1 and len(found[0].name) <= LONGEST_WORD else ""
    return Plan(
        title=f"Delete {only or what}",
        word=only or f"delete {what}",
        lost=[f"{upload.name}, {formats.size(upload.size)} in {upload.storage.name}." for upload in found],
        kept=["Databases that were restored from it, and the history of that."],
        blocked=[
            f"{upload.name}: a restore from it waits or runs. Cancel that first."
            for upload in found
            if uploads.is_wanted(upload.pk)
        ],
    )
