"""What retention keeps: the form, and the same in words."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Any

from django import forms

from jobs.admin import formats
from schedules.plans import MOST_BYTES, MOST_KEPT
from schedules.retention import Policy

GIGABYTE = 10**9
LABELS = {
    "keep_last": ("The last", "So many backups, however old they are."),
    "keep_days": ("Days", "Every backup of so many days."),
    "keep_hourly": ("Hourly", "One of each hour that has one, for so many hours."),
    "keep_daily": ("Daily", "One a day, for so many days."),
    "keep_weekly": ("Weekly", "One a week, for so many weeks."),
    "keep_monthly": ("Monthly", "One a month, for so many months."),
    "keep_yearly": ("Yearly", "One a year, for so many years."),
}
WORDS = {
    "keep_last": "the last {}",
    "keep_days": "all of {} days",
    "keep_hourly": "{} hourly",
    "keep_daily": "{} daily",
    "keep_weekly": "{} weekly",
    "keep_monthly": "{} monthly",
    "keep_yearly": "{} yearly",
}


class KeepingForm(forms.Form):
    """The rules of a policy; all empty: none."""

    keep_size = forms.DecimalField(
        label="At most (GB)",
        required=False,
        min_value=Decimal("0.000000001"),
        max_value=MOST_BYTES // GIGABYTE,
        widget=forms.NumberInput({"step": "any"}),
        help_text="Of what the others keep, the oldest go until it fits. The newest and pinned ones stay.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (label, help_text) in LABELS.items():
            self.fields[name] = forms.IntegerField(
                label=label, help_text=help_text, required=False, min_value=1, max_value=MOST_KEPT
            )
        self.order_fields([*LABELS, "keep_size"])

    def policy(self) -> Policy:
        """Of a valid form."""
        size = self.cleaned_data["keep_size"]
        given = {name: self.cleaned_data[name] or None for name in LABELS}
        return Policy(**given, keep_bytes=int(size * GIGABYTE) if size else None)

    @property
    def rules(self) -> list[forms.BoundField]:
        return [self[name] for name in (*LABELS, "keep_size")]

    @property
    def has_rules(self) -> bool:
        """Something is typed into it, right or wrong."""
        return any(bound.value() not in (None, "") or bound.errors for bound in self.rules)


class ScheduleKeepingForm(KeepingForm):
    keep_failed = forms.IntegerField(
        label="Failed runs",
        required=False,
        min_value=0,
        max_value=MOST_KEPT,
        help_text="So many failed and cancelled runs stay in the history. Empty: all.",
    )


def initial_of(policy: Policy) -> dict[str, Any]:
    values = {name: getattr(policy, name) for name in LABELS}
    return values | {"keep_size": gigabytes(policy.keep_bytes) if policy.keep_bytes else None}


def gigabytes(count: int) -> str:
    """Exact, so that a form which is only looked at gives the same number back."""
    return f"{(Decimal(count) / GIGABYTE).normalize():f}"


def in_words(policy: Policy) -> str:
    """ "the last 3, 7 daily, at most 50.0 GB"; "everything" without a rule."""
    counts = [(each.name, getattr(policy, each.name)) for each in fields(policy)]
    said = [WORDS[name].format(count) for name, count in counts if count and name in WORDS]
    if policy.keep_bytes:
        said += [f"at most {formats.size(policy.keep_bytes)}"]
    return ", ".join(said) or "everything"
