"""Filters over what the user may see, and nothing else."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.admin.formats import NOTHING


class DateFilter(admin.DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "date"


class ScheduleFilter(admin.SimpleListFilter):
    """Of the schedule whose page leads here; there is nothing to choose from."""

    title = "schedule"
    parameter_name = "schedule"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(self.used_parameters[self.parameter_name], "the chosen one")] if self._is_given() else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self._is_given():
            return queryset
        try:
            return queryset.filter(schedule_id=UUID(str(self.value())))
        except ValueError:
            return queryset.none()

    def _is_given(self) -> bool:
        return self.value() is not None


class DatabaseFilter(admin.SimpleListFilter):
    """By the name that the history keeps, which outlives the database."""

    title = "database"
    parameter_name = "database"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by("database_name")
        names = rows.values_list("database_name", flat=True).distinct()
        return [(name, name or NOTHING) for name in names[:200]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() is None else queryset.filter(database_name=self.value())
