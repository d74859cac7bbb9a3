"""Migrations in the admin: the page that starts one, and their history."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jobs.admin import formats, migration_detail
from jobs.admin.base import may_enter
from jobs.admin.filters import DateFilter
from jobs.admin.migration_wizard import MigrationFlow
from jobs.admin.restore_history import WritingAdmin
from jobs.models import MigrationJob


@admin.register(MigrationJob)
class MigrationAdmin(WritingAdmin[MigrationJob]):
    list_display = ["state", "about", "how", "moved", "took", "started"]
    list_display_links = ["state", "about"]
    list_filter = ["status", "mode", ("created_at", DateFilter)]
    search_fields = ["id", "source_database_name", "target_database_name", "target_name", "error"]
    search_help_text = "Part of an id, a database's name or an error."
    names = "target_database_name"

    @admin.display(description="from and into", ordering="source_database_name")
    def about(self, row: MigrationJob) -> str:
        return migration_detail.ends_in_words(row)

    @admin.display(description="size", ordering="size")
    def moved(self, row: MigrationJob) -> str:
        return formats.size(row.size)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        return MigrationFlow(self, request).answer()

    def details(self, request: HttpRequest, row: MigrationJob) -> dict[str, Any]:
        return migration_detail.context(row)
