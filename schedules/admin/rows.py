"""Where a schedule's backups go: rows of storages in order, each with rules of its own if it likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import QuerySet
from django.forms import BaseFormSet, formset_factory

from jobs.models import Storage
from schedules.admin.keeping import KeepingForm
from schedules.plans import MOST_STORAGES, Target

PREFIX = "storages"

if TYPE_CHECKING:
    StorageField = forms.ModelChoiceField[Storage]
    RowsBase = BaseFormSet["TargetForm"]
else:
    StorageField = forms.ModelChoiceField
    RowsBase = BaseFormSet


class StorageChoice(StorageField):
    """`whose`: the account that is not told which storages are its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.whose: int | None = None

    def label_from_instance(self, obj: Storage) -> str:
        own = obj.user_id is None or self.whose in (None, obj.user_id)
        return obj.name if own else f"{obj.name} of {obj.user}"


class TargetForm(KeepingForm):
    storage = StorageChoice(Storage.objects.none(), required=False, empty_label="none")

    def __init__(self, *args: Any, storages: QuerySet[Storage], whose: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["storage"]
        assert isinstance(field, StorageChoice)  # noqa: S101
        field.queryset, field.whose = storages.select_related("user"), whose
        if self.prefix == f"{PREFIX}-0":
            field.empty_label = "as the database says"

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.has_rules and not values.get("storage") and "storage" not in self.errors:
            self.add_error("storage", "Choose the storage that these rules are for, or empty them.")
        return values


class BaseRows(RowsBase):
    def clean(self) -> None:
        """Nothing is written to a storage twice, and without a first one there are no further ones."""
        if any(form.errors for form in self.forms):
            return
        seen: set[Storage] = set()
        for number, form in enumerate(self.forms):
            storage: Storage | None = form.cleaned_data.get("storage")
            if storage is None:
                continue
            if storage in seen:
                form.add_error("storage", f"{storage.name} is chosen above already.")
            elif number and not seen:
                self.forms[0].add_error("storage", "There are further ones: choose the first one too.")
            seen.add(storage)

    def targets(self) -> list[Target]:
        """Of valid rows."""
        chosen = [form for form in self.forms if form.cleaned_data.get("storage")]
        return [Target(form.cleaned_data["storage"], form.policy()) for form in chosen]


Rows = formset_factory(
    TargetForm, formset=BaseRows, extra=0, max_num=MOST_STORAGES, absolute_max=MOST_STORAGES
)


def at_least_one(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(rows) or [{}]


def rearranged(rows: Sequence[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """After a button: "add", "remove:<number>", "up:<number>"."""
    changed = list(rows)
    kind, _, text = what.partition(":")
    number = int(text) if text.isdecimal() and len(text) < 4 else len(changed)
    if kind == "add" and len(changed) < MOST_STORAGES:
        changed.append({})
    elif kind == "remove" and number < len(changed):
        del changed[number]
    elif kind == "up" and 0 < number < len(changed):
        changed[number - 1], changed[number] = changed[number], changed[number - 1]
    return at_least_one(changed)
