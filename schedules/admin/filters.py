"""Filters of the list of schedules, over what the user may see."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from schedules.health import Health, health
from schedules.models import Schedule


class DatabaseFilter(admin.SimpleListFilter):
    title = "database"
    parameter_name = "database"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by("database__name")
        names = rows.values_list("database__name", flat=True).distinct()
        return [(name, name) for name in names[:200]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> QuerySet[Schedule]:
        return queryset if self.value() is None else queryset.filter(database__name=self.value())


class HealthFilter(admin.SimpleListFilter):
    """By what the badges say, asked for all at once."""

    title = "health"
    parameter_name = "health"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(key, words) for key, (words, _) in KINDS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> QuerySet[Schedule]:
        if self.value() not in KINDS:
            return queryset
        _, is_so = KINDS[str(self.value())]
        return queryset.filter(pk__in=[pk for pk, found in health(queryset).items() if is_so(found)])


KINDS: dict[str, tuple[str, Callable[[Health], bool]]] = {
    "overdue": ("overdue", lambda found: found.overdue),
    "failing": ("last run failed", lambda found: found.failures > 0),
    "lagging": ("copies lagging", lambda found: found.copies_lagging > 0),
    "broken": ("broken", lambda found: bool(found.broken)),
    "running": ("running", lambda found: found.running),
}
