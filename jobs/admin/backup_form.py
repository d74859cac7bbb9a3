"""The forms of pg_dump's options, made from the one list of them: of "Back up now", and of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet

from jobs.admin.option_form import OptionForm
from jobs.models import Database, Storage
from jobs.pgtools.flags import FIELDS, DumpFlags
from jobs.stores import usable_by


class DumpForm(OptionForm):
    """`cleaned_data["given"]` are the flags as `jobs.services.enqueue_backup` takes them."""

    options = FIELDS
    flags = DumpFlags
    either = {"": "as pg_dump decides", "yes": "include", "no": "leave out"}
    sections = {
        "common": "",
        "what": "What to back up",
        "how": "How it is written",
        "advanced": "Advanced",
    }


class BackupForm(DumpForm):
    storage = forms.ModelChoiceField(
        Storage.objects.none(), required=False, empty_label="as the database says", label="Storage"
    )

    def __init__(self, databases: Sequence[Database], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        storage = self.fields["storage"]
        assert isinstance(storage, forms.ModelChoiceField)  # noqa: S101
        storage.queryset = _usable_by_all(databases)
        storage.help_text = "Where this one backup goes."


def _usable_by_all(databases: Sequence[Database]) -> QuerySet[Storage]:
    owners = {database.user_id: database.user for database in databases}
    usable = Storage.objects.all()
    for owner in owners.values():
        usable = usable.filter(pk__in=usable_by(owner))
    return usable
