"""The form behind "Back up now", made from the one list of pg_dump's options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import QuerySet

from jobs.admin.widgets import NO_HELP
from jobs.models import Database, Storage
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.flags import FIELDS, DumpFlags, Field
from jobs.stores import usable_by

GROUPS = {
    "common": "",
    "what": "What to back up",
    "how": "How it is written",
    "advanced": "Advanced",
}
DEFAULTS = DumpFlags()
UNSET = (("", "as pg_dump decides"), ("yes", "include"), ("no", "leave out"))


@dataclass(frozen=True)
class Row:
    """One option in the form; `option` is what pg_dump calls it."""

    bound: forms.BoundField
    option: str
    is_switch: bool


@dataclass(frozen=True)
class Group:
    """`is_open` where something in it differs from the defaults or is wrong."""

    title: str
    rows: list[Row]
    is_open: bool


class BackupForm(forms.Form):
    """`cleaned_data["given"]` are the flags as `jobs.services.enqueue_backup` takes them."""

    storage = forms.ModelChoiceField(
        Storage.objects.none(), required=False, empty_label="as the database says", label="Storage"
    )

    def __init__(self, databases: Sequence[Database], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in FIELDS:
            self.fields[field.name] = _form_field(field)
        storage = self.fields["storage"]
        assert isinstance(storage, forms.ModelChoiceField)  # noqa: S101
        storage.queryset = _usable_by_all(databases)
        storage.help_text = "Where this one backup goes."

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.errors:
            return values
        given = {field.name: _flag(field, values[field.name]) for field in FIELDS}
        given = {name: value for name, value in given.items() if value not in (None, "", [])}
        try:
            values["given"] = DumpFlags.from_dict(given).to_dict()
        except InvalidFlags as error:
            for problem in error.problems:
                self._blame(problem)
        return values

    def groups(self) -> Iterator[Group]:
        for key, title in GROUPS.items():
            chosen = [field for field in FIELDS if field.group == key]
            rows = [Row(self[field.name], f"--{field.option}", field.kind == "switch") for field in chosen]
            yield Group(title, rows, key == "common" or any(self._stands_out(row.bound) for row in rows))

    def _blame(self, problem: str) -> None:
        name, _, message = problem.partition(": ")
        if name in self.fields and message:
            self.add_error(name, message)
        else:
            self.add_error(None, problem)

    def _stands_out(self, bound: forms.BoundField) -> bool:
        default = bound.field.initial
        return bool(bound.errors) or (bound.value() or "") not in ("", [], default, str(default))


def initial_values(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags of an earlier backup as the form shows them; what it does not know is left out."""
    known = {field.name: field for field in FIELDS}
    return {name: _shown(known[name], value) for name, value in flags.items() if name in known}


def _usable_by_all(databases: Sequence[Database]) -> QuerySet[Storage]:
    owners = {database.user_id: database.user for database in databases}
    usable = Storage.objects.all()
    for owner in owners.values():
        usable = usable.filter(pk__in=usable_by(owner))
    return usable


def _form_field(field: Field) -> forms.Field:
    shared: dict[str, Any] = {"label": field.label, "help_text": field.help, "required": False}
    default = getattr(DEFAULTS, field.name)
    if field.kind == "choice":
        choices = [(choice, choice) for choice in field.choices]
        return forms.ChoiceField(choices=choices, initial=default, **shared)
    if field.kind == "switch":
        return forms.BooleanField(initial=default, **shared)
    if field.kind == "either":
        return forms.ChoiceField(choices=UNSET, initial="", **shared)
    if field.kind == "number":
        return forms.IntegerField(min_value=field.low, max_value=field.high, initial=default, **shared)
    if field.kind == "sections":
        boxes = forms.CheckboxSelectMultiple()
        choices = [(choice, choice) for choice in field.choices]
        return forms.MultipleChoiceField(choices=choices, widget=boxes, initial=[], **shared)
    widget = forms.Textarea(NO_HELP | {"rows": 2, "placeholder": "one per line"})
    line = forms.TextInput(NO_HELP)
    return forms.CharField(widget=widget if field.kind == "patterns" else line, initial="", **shared)


def _flag(field: Field, value: Any) -> Any:
    if field.kind == "either":
        return {"yes": True, "no": False}.get(value)
    if field.kind == "patterns":
        return [line.strip() for line in value.splitlines() if line.strip()]
    return value


def _shown(field: Field, value: Any) -> Any:
    if field.kind == "either":
        return {True: "yes", False: "no"}.get(value, "")
    if field.kind == "patterns" and isinstance(value, list):
        return "\n".join(str(item) for item in value)
    return value
