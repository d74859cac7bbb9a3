"""Schedules in the admin: the list, and the way to each page."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from jobs.admin.base import ReadOnlyAdmin, SteadyList, may_enter
from jobs.admin.pages import for_each, step
from schedules.admin import columns, steps
from schedules.admin.badges import badges
from schedules.admin.detail import detail
from schedules.admin.editor import Editor
from schedules.admin.filters import DatabaseFilter, HealthFilter
from schedules.admin.live import preview, reading
from schedules.admin.pages import url
from schedules.health import health
from schedules.models import Schedule


class HealthList(SteadyList):
    """With the health of the page's rows, asked for all at once."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = health(Schedule.objects.filter(pk__in=[row.pk for row in self.result_list]))
        for row in self.result_list:
            row.health = found.get(row.pk)


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin[Schedule]):
    """Changed through `schedules.services` alone: Django's own form is read-only and not shown."""

    list_display = ["name", "database_", "timing", "next", "success", "state", "switch", "buttons"]
    list_select_related = ["user", "database"]
    list_filter = [DatabaseFilter, "enabled", HealthFilter]
    search_fields = ["name", "database__name", "cron_expression"]
    search_help_text = "Part of a name, a database's name or a cron expression."
    ordering = ["name"]
    actions = ["enable", "disable", "run_now"]

    class Media:
        css = {"all": ["pgbr/schedules.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return HealthList

    # Columns

    @admin.display(description="database", ordering="database__name")
    def database_(self, schedule: Schedule) -> SafeString:
        page = reverse("admin:jobs_database_change", args=[schedule.database_id])
        return format_html('<a href="{}">{}</a>', page, schedule.database.name)

    @admin.display(description="when")
    def timing(self, schedule: Schedule) -> SafeString:
        return columns.timing(schedule)

    @admin.display(description="next run", ordering="next_run_at")
    def next(self, schedule: Schedule) -> SafeString | str:
        return columns.next_run(schedule)

    @admin.display(description="last success")
    def success(self, schedule: Any) -> SafeString | str:
        return columns.last_success(schedule, schedule.health)

    @admin.display(description="health")
    def state(self, schedule: Any) -> SafeString:
        return badges(schedule, schedule.health)

    @admin.display(description="enabled", ordering="enabled")
    def switch(self, schedule: Schedule) -> SafeString:
        return format_html(
            '<button class="toggle" type="submit" role="switch" aria-checked="{}" aria-label="{} is enabled" '
            'formaction="{}" name="enabled" value="{}">{}</button>',
            "true" if schedule.enabled else "false",
            schedule.name,
            url("enable", schedule.pk),
            "no" if schedule.enabled else "yes",
            "on" if schedule.enabled else "off",
        )

    @admin.display(description="")
    def buttons(self, schedule: Schedule) -> SafeString:
        return format_html(
            '<span class="row-buttons">'
            '<button class="button quiet" type="submit" formaction="{}">Run now</button>'
            '<button class="button quiet" type="submit" formaction="{}">Clone</button></span>',
            url("run", schedule.pk),
            url("clone", schedule.pk),
        )

    # Actions on the list

    @admin.action(description="Enable")
    def enable(self, request: HttpRequest, chosen: QuerySet[Schedule]) -> None:
        for_each(request, chosen, partial(steps.switched, request, True), "enabled", what="schedule")

    @admin.action(description="Disable")
    def disable(self, request: HttpRequest, chosen: QuerySet[Schedule]) -> None:
        for_each(request, chosen, partial(steps.switched, request, False), "disabled", what="schedule")

    @admin.action(description="Run now")
    def run_now(self, request: HttpRequest, chosen: QuerySet[Schedule]) -> None:
        for_each(request, chosen, partial(steps.run, request), "queued", what="backup")

    # Pages

    def get_urls(self) -> list[URLPattern]:
        return [
            path("reading/", self.admin_site.admin_view(reading), name="schedules_schedule_reading"),
            path("preview/", self._posted(preview), name="schedules_schedule_preview"),
            step(self, "edit", self._of(lambda *found: Editor(self, *found).answer()), post=False),
            step(self, "enable", self._of(steps.enable_view)),
            step(self, "run", self._of(steps.run_view)),
            step(self, "clone", self._of(steps.clone_view)),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        return Editor(self, request, None).answer()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        return detail(self, request, self.find(request, object_id))

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        return steps.deletion(self, request, self.find(request, object_id))

    def _of(self, view: Any) -> Any:
        """A view of the schedule that the address names."""

        def found(request: HttpRequest, object_id: UUID) -> HttpResponseBase:
            answer: HttpResponseBase = view(request, self.find(request, object_id))
            return answer

        return found

    def _posted(self, view: Any) -> Any:
        return self.admin_site.admin_view(require_POST(view))
