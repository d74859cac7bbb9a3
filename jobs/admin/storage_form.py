"""The form of a storage. Its secret goes in and never comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from jobs.admin.widgets import secret_line
from jobs.models import BackupCopy, Storage, Upload
from jobs.models.storage import StorageKind
from jobs.secrets import seal

if TYPE_CHECKING:
    StorageModelForm = forms.ModelForm[Storage]
else:
    StorageModelForm = forms.ModelForm

# Where the objects lie. A copy remembers its storage and key only, so these must not move under it.
PLACE = ("kind", "folder", "endpoint", "bucket")
LINES = ("name", "folder", "region", "bucket", "prefix", "access_key_id")
NEEDED = {StorageKind.FOLDER: ["folder"], StorageKind.S3: ["bucket", "access_key_id"]}
STORED = "A secret is stored. Leave this empty to keep it."
NEW = "Kept encrypted, shown to nobody again."


class StorageForm(StorageModelForm):
    owner: User | None  # set by the admin; None: the instance's

    endpoint = forms.URLField(
        required=False,
        assume_scheme="https",
        max_length=500,
        widget=forms.URLInput({"class": "vURLField"}),
        help_text="Such as https://s3.example.com. Empty: AWS.",
    )
    secret = forms.CharField(label="Secret access key", required=False, widget=secret_line())

    class Meta:
        model = Storage
        fields = [
            "name",
            "kind",
            "folder",
            "endpoint",
            "region",
            "bucket",
            "prefix",
            "access_key_id",
            "force_path_style",
        ]
        help_texts = {
            "folder": "An absolute path on the machine where the workers run.",
            "bucket": "Made by the first test or backup when it is missing and the key may make it.",
            "prefix": "Put before every object's key. Empty: none.",
            "force_path_style": "endpoint/bucket, not bucket.endpoint, as most servers but AWS need it.",
        }
        labels = {"access_key_id": "Access key id", "force_path_style": "Path-style addresses"}
        widgets = {"folder": forms.TextInput({"class": "vLargeTextField"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["secret"].help_text = STORED if self.instance.sealed_secret else NEW

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"]).strip()
        if Storage.objects.filter(user=self.owner, name=name).exclude(pk=self.instance.pk).exists():
            raise ValidationError(f"A storage called {name!r} exists already.")
        return name

    def clean_prefix(self) -> str:
        return str(self.cleaned_data["prefix"]).strip().strip("/")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        for name in LINES:
            if not str(values.get(name, "")).isprintable():
                self.add_error(name, "Only printable characters are allowed.")
        kind = StorageKind(values.get("kind") or self.instance.kind)
        for name in NEEDED[kind]:
            if name in self.fields and not values.get(name) and name not in self.errors:
                self.add_error(name, "This is needed.")
        if kind == StorageKind.S3 and not (values.get("secret") or self.instance.sealed_secret):
            self.add_error("secret", "This is needed.")
        folder = values.get("folder")
        if kind == StorageKind.FOLDER and folder and not folder.startswith("/"):
            self.add_error("folder", "An absolute path is needed, such as /srv/backups.")
        self._keep_place()
        return values

    def apply(self, storage: Storage) -> None:
        if self.cleaned_data["secret"]:
            storage.sealed_secret = seal(self.cleaned_data["secret"])
        # What the last test said, it said of other settings.
        storage.test_result = storage.tested_at = None

    def _keep_place(self) -> None:
        moved = [name for name in PLACE if name in self.changed_data]
        if not moved or self.instance._state.adding:
            return
        stored = BackupCopy.objects.filter(storage=self.instance).count()
        stored += Upload.objects.filter(storage=self.instance).count()
        if stored:
            what = "1 object lies" if stored == 1 else f"{stored} objects lie"
            message = f"{what} there and would be out of reach. Add another storage for the new place."
            self.add_error(moved[0], message)
