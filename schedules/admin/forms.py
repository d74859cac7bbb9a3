"""The smaller forms of a schedule: what it is called and of which database, what it skips, whom it tells."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from jobs.admin.restore_forms import DatabaseChoice
from jobs.admin.widgets import NO_HELP
from jobs.models import Database
from schedules.models import Schedule
from schedules.ping_urls import HELP
from schedules.plans import LONGEST_NAME, LONGEST_URL

MOVED = "A schedule stays with its database. For another one, make a new schedule with the same settings."


class NameForm(forms.Form):
    """`schedule`: None for a new one."""

    name = forms.CharField(
        label="Name",
        max_length=LONGEST_NAME,
        widget=forms.TextInput(NO_HELP),
        help_text="What you call it here; unique among your schedules.",
    )
    database = DatabaseChoice(
        Database.objects.none(), label="Database", empty_label="choose one", required=False
    )

    def __init__(
        self, by: User, databases: QuerySet[Database], schedule: Schedule | None, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.schedule = schedule
        if schedule is None and not self.is_bound:
            self.fields["name"].widget.attrs["autofocus"] = True
        field = self.fields["database"]
        assert isinstance(field, DatabaseChoice)  # noqa: S101
        field.queryset, field.whose = databases.select_related("user").order_by("name"), by.pk
        if schedule is None and not self.initial.get("database"):
            self.initial["database"] = _only(databases)

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name.isprintable():
            raise ValidationError("Only printable characters are allowed.")
        return name

    def clean_database(self) -> Database:
        given: Database | None = self.cleaned_data["database"]
        if self.schedule is not None:
            if given is not None and given.pk != self.schedule.database_id:
                raise ValidationError(MOVED)
            return self.schedule.database
        if given is None:
            raise ValidationError("Choose the database to back up.")
        return given

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("database") and values.get("name"):
            self._refuse_namesakes(values["database"].user_id, values["name"])
        return values

    def _refuse_namesakes(self, owner_id: int, name: str) -> None:
        others = Schedule.objects.filter(user_id=owner_id, name=name)
        if self.schedule is not None:
            others = others.exclude(pk=self.schedule.pk)
        if others.exists():
            self.add_error("name", f"A schedule called {name!r} exists already.")


def _only(databases: QuerySet[Database]) -> UUID | None:
    """Where there is no choice, none has to be made."""
    found = list(databases.values_list("pk", flat=True)[:2])
    return found[0] if len(found) == 1 else None


class SwitchForm(forms.Form):
    """What is done about slots that cannot be kept. `enabled` is asked for new ones only: later it is one
    click, which a form that was opened before must not undo."""

    skip_missed = forms.BooleanField(
        label="Skip missed runs",
        required=False,
        help_text="After a time in which no worker ran, it waits for the next slot. Else one run, marked as "
        "late, makes up for all that were missed.",
    )
    skip_overlap = forms.BooleanField(
        label="Skip while the previous one is unfinished",
        required=False,
        help_text="Such a slot makes no backup and is shown as skipped. Else the runs overlap.",
    )
    enabled = forms.BooleanField(
        label="Enabled",
        required=False,
        initial=True,
        help_text="Otherwise it is saved and runs only by hand until it is switched on.",
    )

    def __init__(self, *args: Any, new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not new:
            del self.fields["enabled"]


def _address(label: str, help_text: str) -> forms.CharField:
    line = forms.TextInput(NO_HELP | {"inputmode": "url", "placeholder": "https://…"})
    return forms.CharField(
        label=label, required=False, max_length=LONGEST_URL, widget=line, help_text=help_text
    )


class PingForm(forms.Form):
    """`schedules.services` says which addresses may be called."""

    ping_success_url = _address("On success", HELP)
    ping_start_url = _address("On start", "Called when a backup begins.")
    ping_failure_url = _address("On failure", "Called when one failed, was cancelled or lost its worker.")

    @property
    def is_used(self) -> bool:
        return any(bound.value() or bound.errors for bound in self)
