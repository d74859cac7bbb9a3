"""Filters over what the user may see, and nothing else."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.admin.formats import NOTHING


class DateFilter(admin.DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "date"


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
