"""The forms of which the page of a schedule is made, together: from a plan, as sent, and to a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.forms import Form
from django.http import QueryDict

from jobs.admin.backup_form import DumpForm
from jobs.admin.option_form import initial_values
from jobs.models import Database, Storage
from jobs.pgtools.flags import FIELDS
from jobs.services import visible_to
from jobs.stores import usable_by
from schedules.admin import keeping, timing
from schedules.admin.forms import NameForm, PingForm, SwitchForm
from schedules.admin.keeping import ScheduleKeepingForm
from schedules.admin.rows import PREFIX, BaseRows, Rows, at_least_one
from schedules.admin.timing import TimingForm
from schedules.models import Schedule
from schedules.plans import PING_URLS, Plan

Initial = dict[str, Any]  # a part's name -> the values of its fields; of "rows": a list of such
BLANK: Initial = {"rows": [{}]}  # all else begins with the defaults of the fields


@dataclass
class Parts:
    """Each form by its name in the template."""

    name: NameForm
    timing: TimingForm
    switches: SwitchForm
    options: DumpForm
    rows: BaseRows
    keeping: ScheduleKeepingForm
    pings: PingForm

    def forms(self) -> dict[str, Form]:
        return {key: form for key, form in vars(self).items() if isinstance(form, Form)}

    def are_valid(self, names: Collection[str] = ()) -> bool:
        """Those of `names`, or all; each one says itself what is wrong with it."""
        wrong = [
            form for key, form in vars(self).items() if (not names or key in names) and not form.is_valid()
        ]
        return not wrong

    @property
    def has_errors(self) -> bool:
        return any(form.errors for form in self.forms().values()) or self.rows_are_wrong

    @property
    def rows_are_wrong(self) -> bool:
        return any(self.rows.errors) or bool(self.rows.non_form_errors())

    def plan(self, *, enabled: bool) -> Plan:
        """Of valid forms; `enabled`: of a schedule that is there already."""
        when, switches = self.timing.cleaned_data, self.switches.cleaned_data
        return Plan(
            name=self.name.cleaned_data["name"],
            cron_expression=when["expression"],
            timezone=when["timezone"],
            flags=self.options.cleaned_data["given"],
            enabled=switches.get("enabled", enabled),
            skip_missed=switches["skip_missed"],
            overlap="skip" if switches["skip_overlap"] else "allow",
            policy=self.keeping.policy(),
            keep_failed=self.keeping.cleaned_data["keep_failed"],
            storages=self.rows.targets(),
            **self.pings.cleaned_data,
        )


class Maker:
    """Makes the parts for one account and schedule (None: a new one)."""

    def __init__(self, by: User, schedule: Schedule | None) -> None:
        self.by = by
        self.schedule = schedule
        self.databases = visible_to(by, Database.objects.all())
        owner = schedule.user if schedule else by
        everything = by.is_superuser and schedule is None
        self.storages = (Storage.objects.all() if everything else usable_by(owner)).order_by("name")

    def fresh(self, initial: Initial) -> Parts:
        return self._make(None, initial, ())

    def sent(self, data: QueryDict) -> Parts:
        return self._make(data, {}, Parts.__dataclass_fields__)

    def as_typed(self, data: QueryDict, judged: Collection[str]) -> Parts:
        """What was sent, of which only the parts `judged` say what is wrong with them."""
        return self._make(data, typed(self.sent(data)), judged)

    def _make(self, data: Any, initial: Initial, bound: Collection[str]) -> Parts:
        def given(name: str) -> dict[str, Any]:
            return {"data": data} if name in bound else {"initial": initial.get(name)}

        extra = {"storages": self.storages, "whose": self.by.pk}
        return Parts(
            name=NameForm(self.by, self.databases, self.schedule, **given("name")),
            timing=TimingForm(**given("timing")),
            switches=SwitchForm(new=self.schedule is None, **given("switches")),
            options=DumpForm(**given("options")),
            rows=cast(BaseRows, Rows(prefix=PREFIX, form_kwargs=extra, **given("rows"))),
            keeping=ScheduleKeepingForm(**given("keeping")),
            pings=PingForm(**given("pings")),
        )


def typed(parts: Parts) -> Initial:
    """What bound forms were given, valid or not."""
    values: Initial = {key: _values(form) for key, form in parts.forms().items()}
    return values | {"rows": at_least_one([_values(form) for form in parts.rows.forms])}


def _values(form: Form) -> dict[str, Any]:
    return {
        name: field.widget.value_from_datadict(form.data, form.files, form.add_prefix(name))
        for name, field in form.fields.items()
    }


def initial_of(plan: Plan) -> Initial:
    """Everything that a plan says, as the forms show it."""
    return {
        "name": {"name": plan.name},
        "timing": timing.initial_of(plan.cron_expression, plan.timezone),
        "switches": {"skip_missed": plan.skip_missed, "skip_overlap": plan.overlap == "skip"},
        "options": initial_values(FIELDS, plan.flags if isinstance(plan.flags, Mapping) else {}),
        "rows": at_least_one(
            [{"storage": target.storage.pk, **keeping.initial_of(target.policy)} for target in plan.storages]
        ),
        "keeping": keeping.initial_of(plan.policy) | {"keep_failed": plan.keep_failed},
        "pings": {name: getattr(plan, name) for name in PING_URLS},
    }
