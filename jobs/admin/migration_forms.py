"""The forms of a migration: from where, to where, and the options of both tools."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html

from jobs.admin import migration_urls
from jobs.admin.base import account
from jobs.admin.database_form import EXAMPLE
from jobs.admin.option_form import OptionForm
from jobs.admin.restore_forms import DatabaseChoice, LandingForm, replaced
from jobs.admin.widgets import WriteOnlyLine
from jobs.models import Database
from jobs.pgtools.errors import InvalidConninfo
from jobs.pgtools.flags import FIELDS, DumpFlags
from jobs.services import visible_to
from jobs.targets import parse

STREAM, STAGED = "stream", "staged"
WAYS = {
    STREAM: "Stream: from the source straight into the target, nothing is stored",
    STAGED: "Staged: a parallel dump to the worker's disk, then a parallel restore; faster, and needs room",
}
# Pgbr chooses format, compression and jobs; the others are for plain SQL, or are told to the restore.
NOT_HERE = frozenset({
    "format", "compress", "jobs", "clean", "if_exists", "create", "no_owner", "no_privileges",
    "disable_triggers",
})  # fmt: skip


class DumpOptions(OptionForm):
    options = [field for field in FIELDS if field.name not in NOT_HERE]
    flags = DumpFlags
    either = {"": "as pg_dump decides", "yes": "include", "no": "leave out"}
    sections = {
        "what": "What is dumped",
        "how": "How it is dumped",
        "advanced": "Dumping: advanced",
    }


class EndForm(forms.Form):
    """One end: a registered database, or a URL. `cleaned_data["end"]` is the one or the other.

    A URL goes in and never comes out: the page carries a name for it (`migration_urls`).
    """

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        user = account(request)
        self.fields["database"] = DatabaseChoice(
            visible_to(user, Database.objects.select_related("user").order_by("name")),
            whose=user.pk,
            label="Database",
            required=False,
            empty_label="another one, by its URL",
        )
        self.fields["url"] = forms.CharField(
            label="URL", required=False, widget=WriteOnlyLine({"placeholder": EXAMPLE})
        )
        self.fields["kept"] = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        database, typed = values.get("database"), str(values.get("url") or "").strip()
        if database is not None and typed:
            self.add_error("url", "Choose a database or give a URL, not both.")
        elif database is not None:
            values["end"] = database
        elif url := typed or migration_urls.kept(self.request, values.get("kept") or ""):
            self._take(url, values, is_new=bool(typed))
        elif "database" not in self.errors:
            self.add_error("database", "Choose a database, or give a URL.")
        return values

    def url_help(self) -> str:
        """What is kept, masked; escaped here."""
        url = migration_urls.kept(self.request, self["kept"].value() or "")
        try:
            masked = parse(url, owner=account(self.request)).masked() if url else ""
        except InvalidConninfo:
            masked = ""
        if not masked:
            return "Kept encrypted and shown to nobody again."
        return format_html("Now <code>{}</code>. Leave this empty to keep it.", masked)

    def _take(self, url: str, values: dict[str, Any], *, is_new: bool) -> None:
        try:
            parse(url, owner=account(self.request))
        except InvalidConninfo as error:
            self.add_error("url", str(error))
            return
        values["end"] = url
        if is_new:
            kept = {
                self.add_prefix("url"): "",
                self.add_prefix("kept"): migration_urls.keep(self.request, url),
            }
            self.data = replaced(self.data, kept)


class SourceForm(EndForm):
    field_order = ["database", "url", "kept"]


class MigrationTarget(EndForm, LandingForm):
    way = forms.ChoiceField(
        label="Way", choices=list(WAYS.items()), widget=forms.RadioSelect, initial=STREAM, required=False
    )
    field_order = ["database", "url", "kept", "mode", "name", "way"]
