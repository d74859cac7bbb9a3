"""When a schedule runs: the form, and what it means in words and instants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from jobs.admin.widgets import NO_HELP
from schedules import cron
from schedules.wording import in_words
from schedules.zones import zone_names, zone_of

PRESETS = {"hourly": "Hourly", "daily": "Daily", "weekly": "Weekly", "monthly": "Monthly", "custom": "Custom"}
WEEKDAYS = {"1": "Mon", "2": "Tue", "3": "Wed", "4": "Thu", "5": "Fri", "6": "Sat", "0": "Sun"}
RUNS = 5
# Which of hour, day of month and day of week are given.
SHAPES = {
    (False, False, False): "hourly",
    (True, False, False): "daily",
    (True, False, True): "weekly",
    (True, True, False): "monthly",
}

FIELDS_OF: Mapping[str, set[str]] = {
    "hourly": {"minute"},
    "daily": {"time"},
    "weekly": {"time", "weekdays"},
    "monthly": {"time", "day"},
    "custom": {"cron"},
}
EITHER = frozenset().union(*FIELDS_OF.values())


@cache
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in zone_names()}


class TimingForm(forms.Form):
    """`cleaned_data` has the `expression` of the chosen preset, checked together with the zone."""

    preset = forms.ChoiceField(
        label="How often", choices=list(PRESETS.items()), initial="daily", widget=forms.RadioSelect
    )
    minute = forms.IntegerField(label="Minute past the hour", min_value=0, max_value=59, initial=0)
    time = forms.TimeField(
        label="Time of day",
        initial="03:30",
        input_formats=["%H:%M"],
        widget=forms.TimeInput({"type": "time"}, format="%H:%M"),
        error_messages={"invalid": "A time such as 03:30 is needed."},
    )
    weekdays = forms.MultipleChoiceField(
        label="Days of the week",
        choices=list(WEEKDAYS.items()),
        initial=["1"],
        widget=forms.CheckboxSelectMultiple,
    )
    day = forms.IntegerField(
        label="Day of the month",
        min_value=1,
        max_value=31,
        initial=1,
        help_text="A month without that day has no run.",
    )
    cron = forms.CharField(
        label="Cron expression",
        max_length=200,
        widget=forms.TextInput(NO_HELP | {"placeholder": "30 2 * * mon-fri"}),
        help_text="Five fields: minute, hour, day of month, month, day of week. Also @hourly, @daily, "
        "@weekly, @monthly, @yearly.",
    )
    timezone = forms.CharField(
        label="Time zone",
        max_length=100,
        initial="UTC",
        widget=forms.TextInput(NO_HELP | {"list": "zones"}),
        help_text="Hours are of this zone, in summer and in winter.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in EITHER:
            self.fields[name].required = False

    def clean_timezone(self) -> str:
        given = str(self.cleaned_data["timezone"])
        found = _by_lower_case().get(given.lower(), given)
        try:
            zone_of(found)
        except cron.CronError as error:
            raise ValidationError(str(error).removeprefix("time zone: ")) from error
        return found

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        asked = FIELDS_OF.get(values.get("preset", ""), set())
        for name in EITHER - asked:
            self.errors.pop(name, None)  # what is not asked for is not shown either
        for name in sorted(asked - self.errors.keys()):
            if values.get(name) in (None, "", []):
                self.add_error(name, "This is needed.")
        if not self.errors:
            self._check(values)
        return values

    def zone_or(self, other: str) -> str:
        """As typed, valid or not; `other` where no zone is called so."""
        return _by_lower_case().get(str(self["timezone"].value()).lower(), other)

    def judged(self) -> TimingForm:
        """Bound, if it was not, to what it shows."""
        return self if self.is_bound else TimingForm({bound.name: bound.value() for bound in self})

    def reading(self) -> Reading | None:
        """None where the form is not valid."""
        if not self.is_valid():
            return None
        return reading_of(self.cleaned_data["expression"], self.cleaned_data["timezone"])

    def _check(self, values: dict[str, Any]) -> None:
        values["expression"] = expression_of(values)
        try:
            cron.check(values["expression"], values["timezone"])
        except cron.CronError as error:
            self.add_error("cron" if values["preset"] == "custom" else None, str(error))


def expression_of(values: Mapping[str, Any]) -> str:
    """Of the cleaned values of a TimingForm."""
    if values["preset"] == "custom":
        return " ".join(str(values["cron"]).split())
    if values["preset"] == "hourly":
        return f"{values['minute']} * * * *"
    at = f"{values['time'].minute} {values['time'].hour}"
    if values["preset"] == "daily":
        return f"{at} * * *"
    if values["preset"] == "weekly":
        return f"{at} * * {','.join(sorted(values['weekdays']))}"
    return f"{at} {values['day']} * *"


def initial_of(expression: str, zone: str) -> dict[str, Any]:
    """The values with which a TimingForm means this expression: of a preset where it says the very same."""
    try:
        values = _as_preset(expression)
        same = expression_of(values) == expression and set(values.get("weekdays", ())) <= WEEKDAYS.keys()
    except (ValueError, KeyError):
        same = False
    return {"timezone": zone, **(values if same else {"preset": "custom", "cron": expression})}


def _as_preset(expression: str) -> dict[str, Any]:
    """Raises ValueError or KeyError for what no preset looks like."""
    minute, hour, day, _, weekdays = expression.split(" ")
    given = (hour != "*", day != "*", weekdays != "*")
    values: dict[str, Any] = {"preset": SHAPES[given]}
    values |= {"time": time(int(hour), int(minute))} if given[0] else {"minute": int(minute)}
    values |= {"day": int(day)} if given[1] else {}
    return values | ({"weekdays": weekdays.split(",")} if given[2] else {})


@dataclass(frozen=True)
class Reading:
    """What an expression means."""

    expression: str
    zone: str
    words: str
    warnings: list[str]
    runs: list[datetime]

    @property
    def lines(self) -> list[tuple[datetime, str, str]]:
        """Each run with its time in the schedule's zone and in UTC."""
        return [(run, local(run, self.zone), local(run, "UTC")) for run in self.runs]


def reading_of(expression: str, zone: str) -> Reading:
    """Raises `CronError`."""
    runs = cron.upcoming(expression, zone, timezone.now(), RUNS)
    return Reading(expression, zone, in_words(expression), cron.warnings(expression), runs)


def local(moment: datetime, zone: str) -> str:
    """ "Tue 2026-12-01 02:30 CET"; in UTC where there is no such zone (any more)."""
    try:
        there = moment.astimezone(zone_of(zone))
    except (cron.CronError, OverflowError):
        there = moment.astimezone(UTC)
    return f"{there:%a %Y-%m-%d %H:%M %Z}"
