"""The part of a database's form that is about watching its server."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.module_loading import import_string

from jobs.models import Database

MOST_PATTERNS, LONGEST_PATTERN = 100, 200
COLUMNS = ("watch", "watch_include", "watch_exclude", "watch_schedule_id")
FIELDS = ("watch", "include", "exclude", "schedule")


def _patterns(help_text: str) -> forms.CharField:
    return forms.CharField(
        required=False, help_text=help_text, widget=forms.Textarea({"rows": 3, "spellcheck": "false"})
    )


class WatchFields(forms.Form):
    include = _patterns("Patterns such as shop_*, one a line, case and all. Empty: every database.")
    exclude = _patterns("Patterns of databases that are left alone, one a line.")
    schedule = forms.ChoiceField(
        label="Schedule",
        required=False,
        help_text="New databases get a copy of it, switched on: times, options, retention and storages. "
        "It calls no monitor until you give it an address of its own.",
    )

    def offer_watch(self, database: Database, owner: User) -> None:
        field = self.fields["schedule"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        field.choices = [
            ("", "none: they are registered only"),
            *import_string(settings.SCHEDULE_CHOICES)(owner),
        ]
        self.initial["include"] = _lines(database.watch_include)
        self.initial["exclude"] = _lines(database.watch_exclude)
        self.initial["schedule"] = str(database.watch_schedule_id or "")

    def clean_include(self) -> list[str]:
        return self._clean_patterns("include")

    def clean_exclude(self) -> list[str]:
        return self._clean_patterns("exclude")

    def _clean_patterns(self, name: str) -> list[str]:
        lines = str(self.cleaned_data[name]).splitlines()
        patterns = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        if len(patterns) > MOST_PATTERNS or any(len(one) > LONGEST_PATTERN for one in patterns):
            raise ValidationError(
                f"At most {MOST_PATTERNS} patterns of {LONGEST_PATTERN} characters each can be given."
            )
        return patterns

    def apply_watch(self, database: Database, *, elsewhere: bool) -> list[str]:
        """Put it into the row; the columns that this decides about. After a change the next look is due at
        once; of another server (`elsewhere`) nothing is known."""
        before = Database.objects.filter(pk=database.pk).values(*COLUMNS).first()
        database.watch = self.cleaned_data["watch"]
        database.watch_include = self.cleaned_data["include"]
        database.watch_exclude = self.cleaned_data["exclude"]
        database.watch_schedule_id = self.cleaned_data["schedule"] or None
        changed = before != {name: getattr(database, name) for name in COLUMNS}
        if elsewhere:
            database.watched = None
        if changed or elsewhere:
            database.watched_at = None
        return [
            *COLUMNS,
            *(["watched"] if elsewhere else []),
            *(["watched_at"] if changed or elsewhere else []),
        ]


def _lines(value: Any) -> str:
    return "\n".join(str(one) for one in value) if isinstance(value, list) else ""
