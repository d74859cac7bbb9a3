"""The form of a database. Its URL and client key go in and never come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.html import format_html

from jobs.admin.watch_form import WatchFields
from jobs.admin.widgets import WriteOnlyLine, WriteOnlyText
from jobs.crypto import CannotDecrypt
from jobs.databases import set_connection
from jobs.models import Database
from jobs.pgtools.errors import InvalidConninfo
from jobs.secrets import unseal
from jobs.stores import usable_by
from jobs.targets import conninfo_for, parse

if TYPE_CHECKING:
    DatabaseModelForm = forms.ModelForm[Database]
else:
    DatabaseModelForm = forms.ModelForm

EXAMPLE = "postgresql://user:password@host:5432/dbname"
MEGABYTE = 1_000_000


class DatabaseForm(DatabaseModelForm, WatchFields):
    owner: User  # set by the admin: whose database this is or will be

    url = forms.CharField(label="URL", required=False, widget=WriteOnlyLine({"placeholder": EXAMPLE}))
    client_key = forms.CharField(label="Client key", required=False, widget=WriteOnlyText())
    max_minutes = forms.IntegerField(
        label="Longest duration (minutes)",
        required=False,
        min_value=1,
        max_value=60 * 24 * 30,
        help_text="A backup that takes longer is stopped and failed. Empty: no limit.",
    )
    max_rate = forms.DecimalField(
        label="Bandwidth limit (MB/s)",
        required=False,
        min_value=0.01,
        max_value=100_000,
        help_text="What a backup reads from the server at most. Empty: no limit.",
    )

    class Meta:
        model = Database
        fields = [
            "name",
            "sslmode",
            "ca_certificate",
            "client_certificate",
            "storage",
            "protected",
            "max_parallel",
            "watch",
        ]
        labels = {
            "sslmode": "TLS",
            "ca_certificate": "CA certificate",
            "protected": "Protected",
            "max_parallel": "Dumps at once",
            "storage": "Storage",
            "watch": "Watch",
        }
        help_texts = {
            "name": "What you call it here; unique among your databases.",
            "ca_certificate": "PEM of the CA that signed the server's certificate.",
            "client_certificate": "PEM, for servers that ask for one. Without it the key is dropped too.",
            "max_parallel": "On its server, among databases with such a limit. Empty: no limit.",
            "watch": "New databases of the server are registered within the hour; vanished ones are told.",
        }
        widgets = {"name": forms.TextInput({"class": "vTextField", "autocomplete": "off"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["url"].help_text = self._url_help()
        self.fields["client_key"].help_text = self._key_help()
        self._offer_storages()
        self.offer_watch(self.instance, self.owner)
        self.initial["max_minutes"] = self.instance.max_duration and self.instance.max_duration // 60
        self.initial["max_rate"] = (
            self.instance.bandwidth_limit and round(self.instance.bandwidth_limit / MEGABYTE, 2)
        )  # fmt: skip

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"]).strip()
        if not name or not name.isprintable():
            raise ValidationError("A name needs at least one character, and only printable ones.")
        namesakes = Database.objects.filter(user_id=self.owner.pk, name=name).exclude(pk=self.instance.pk)
        if namesakes.exists():
            raise ValidationError(f"A database called {name!r} is registered already.")
        return name

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        try:
            connection = self._connection(values)
            parse(owner=self.owner, **connection)
        except InvalidConninfo as error:
            self.add_error(self._culprit(), str(error))
        except CannotDecrypt as error:
            self.add_error("url", str(error))
        else:
            values["connection"] = connection
        return values

    def apply(self, database: Database) -> None:
        """Put what the model's own fields do not carry into the row."""
        connection = dict(self.cleaned_data["connection"])
        set_connection(database, connection.pop("url"), **connection)
        minutes, rate = self.cleaned_data["max_minutes"], self.cleaned_data["max_rate"]
        database.max_duration = minutes and minutes * 60
        database.bandwidth_limit = rate and int(rate * MEGABYTE)
        if self.cleaned_data["url"]:
            database.facts = database.checked_at = None
        self._watch_columns = self.apply_watch(database, elsewhere=bool(self.cleaned_data["url"]))

    def columns(self) -> list[str]:
        """The columns that this form decides about, once it is applied."""
        looked_at = ["facts", "checked_at"] if self.cleaned_data["url"] else []
        sealed = ["sealed_url", "sealed_client_key", "max_duration", "bandwidth_limit"]
        return [*DatabaseForm.Meta.fields, *sealed, *looked_at, *self._watch_columns]

    def _connection(self, values: dict[str, Any]) -> dict[str, str]:
        """As `jobs.targets.parse` takes it; what was left empty stays as it is stored."""
        what = f"the database {self.instance.name!r}"
        url = values.get("url") or unseal(self.instance.sealed_url, f"The URL of {what}")
        if not url:
            raise InvalidConninfo(f"A URL is needed: {EXAMPLE}")
        certificate = values.get("client_certificate", "")
        key = values.get("client_key", "")
        if certificate and not key:
            key = unseal(self.instance.sealed_client_key, f"The client key of {what}")
        return {
            "url": url,
            "sslmode": values.get("sslmode", ""),
            "ca_certificate": values.get("ca_certificate", ""),
            "client_certificate": certificate,
            "client_key": key,
        }

    def _culprit(self) -> str | None:
        """The URL is to blame where it was typed, else whatever stands around it."""
        typed = self.data.get(self.add_prefix("url"))
        return "url" if typed or not self.instance.sealed_url else None

    def _url_help(self) -> str:
        """Escaped here: the admin prints help texts as they are."""
        if not self.instance.sealed_url:
            return "Kept encrypted and shown to nobody again."
        try:
            masked = conninfo_for(self.instance).masked()
        except (CannotDecrypt, InvalidConninfo) as error:
            return format_html("{} Enter the URL again.", str(error))
        return format_html("Now <code>{}</code>. Leave this empty to keep it.", masked)

    def _key_help(self) -> str:
        if self.instance.sealed_client_key:
            return "A key is stored. Leave this empty to keep it."
        return "PEM of the client certificate's private key; kept encrypted, shown to nobody again."

    def _offer_storages(self) -> None:
        field = self.fields["storage"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101
        field.queryset = usable_by(self.owner)
        field.empty_label = "the instance's default"
        for link in ("can_add_related", "can_change_related", "can_delete_related", "can_view_related"):
            setattr(field.widget, link, False)
