"""The page on which a schedule is made or changed. Nothing on it needs a script."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from jobs.admin.base import OwnedAdmin, account
from jobs.pgtools.errors import InvalidFlags
from jobs.services import visible_to
from schedules import services
from schedules.admin.pages import DETAIL, REFUSALS, page
from schedules.admin.parts import BLANK, Maker, Parts, initial_of, typed
from schedules.admin.previewing import preview_of
from schedules.admin.rows import rearranged
from schedules.admin.timing import Reading, local
from schedules.cron import CronError
from schedules.models import Schedule
from schedules.zones import zone_names

TEMPLATE = "schedule/edit.html"


class Editor:
    """One request. `schedule`: None for a new one."""

    def __init__(self, owner: OwnedAdmin[Schedule], request: HttpRequest, schedule: Schedule | None) -> None:
        self.owner = owner
        self.request = request
        self.by = account(request)
        self.schedule = schedule
        self.maker = Maker(self.by, schedule)

    def answer(self) -> HttpResponseBase:
        """A POST saves, or does what its button says: `step` is "check", "preview" or "row:…"."""
        if self.request.method != "POST":
            return self._first()
        step, _, what = self.request.POST.get("step", "").partition(":")
        if step == "row":
            return self._show(self._with_rows(what))
        if step == "check":
            return self._show(self.maker.as_typed(self.request.POST, {"timing"}))
        if step == "preview":
            return self._previewed()
        parts = self.maker.sent(self.request.POST)
        return self._save(parts) if parts.are_valid() else self._show(parts)

    def _save(self, parts: Parts) -> HttpResponseBase:
        try:
            saved = self._saved(parts)
        except InvalidFlags as error:
            for problem in error.problems:
                parts.options.blame(problem)
        except CronError as error:
            parts.timing.add_error(None, str(error))
        except REFUSALS as error:
            parts.name.add_error(None, str(error))
        else:
            messages.success(self.request, f"The schedule {saved.name} is saved. {_promise(saved)}")
            return redirect(DETAIL, saved.pk)
        return self._show(parts)

    @transaction.atomic
    def _saved(self, parts: Parts) -> Schedule:
        if self.schedule is None:
            database = parts.name.cleaned_data["database"]
            return services.create(database, parts.plan(enabled=True), by=self.by)
        row = Schedule.objects.select_for_update().filter(pk=self.schedule.pk).first() or self.schedule
        return services.update(row, parts.plan(enabled=row.enabled), by=self.by)

    def _with_rows(self, what: str) -> Parts:
        values = typed(self.maker.sent(self.request.POST))
        return self.maker.fresh(values | {"rows": rearranged(values["rows"], what)})

    def _previewed(self) -> HttpResponseBase:
        judged = {"rows", "keeping"}
        parts = self.maker.as_typed(self.request.POST, judged)
        if not parts.are_valid(judged):
            return self._show(parts)
        found = preview_of(self.schedule, parts)
        return self._show(parts, preview=found)

    def _first(self) -> HttpResponseBase:
        """`?database=<id>` of a new one, `?like=<id>`: the settings of another."""
        if self.schedule is not None:
            return self._show(self.maker.fresh(initial_of(services.plan_of(self.schedule))))
        name = {"name": {"database": self.request.GET.get("database") or None}}
        like = self._like()
        if like is None:
            return self._show(self.maker.fresh(BLANK | name), is_blank=True)
        return self._show(self.maker.fresh(initial_of(services.plan_to_copy(like)) | name))

    def _like(self) -> Schedule | None:
        try:
            like = UUID(self.request.GET.get("like", ""))
        except ValueError:
            return None
        return visible_to(self.by, Schedule.objects.filter(pk=like)).first()

    def _show(self, parts: Parts, **context: Any) -> HttpResponseBase:
        title = f"Change {self.schedule.name}" if self.schedule else "New schedule"
        shown: dict[str, Any] = {
            "schedule": self.schedule,
            "parts": parts,
            "forms": parts.forms(),
            "reading": self._reading(parts),
            "zones": sorted(zone_names()),
            "no_database": not self.maker.databases.exists(),
        }
        response = page(self.owner, self.request, TEMPLATE, title, **(shown | context))
        response.status_code = 400 if parts.has_errors else 200
        return response

    def _reading(self, parts: Parts) -> Reading | None:
        """Of what the page begins with or was sent; None where that says no time."""
        return parts.timing.judged().reading()


def _promise(saved: Schedule) -> str:
    if not saved.enabled or saved.next_run_at is None:
        return "It is off."
    return f"It runs next on {local(saved.next_run_at, saved.timezone)}."
