"""Restores in the admin: the page that starts one, and their history."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jobs.admin import formats, restore_detail
from jobs.admin.filters import DatabaseFilter, DateFilter
from jobs.admin.restore_history import WritingAdmin, target_in_words
from jobs.models import RestoreJob


@admin.register(RestoreJob)
class RestoreAdmin(WritingAdmin[RestoreJob]):
    list_display = ["state", "about", "came_from", "how", "took", "started"]
    list_display_links = ["state", "about"]
    list_filter = ["status", DatabaseFilter, "mode", ("created_at", DateFilter)]
    search_fields = ["id", "database_name", "target_name", "source_name", "error"]
    search_help_text = "Part of an id, a database's or a source's name, or an error."

    @admin.display(description="into", ordering="database_name")
    def about(self, row: RestoreJob) -> str:
        return target_in_words(row.database_name, row.target_name)

    @admin.display(description="from", ordering="source_name")
    def came_from(self, row: RestoreJob) -> str:
        return row.source_name or formats.NOTHING

    def details(self, request: HttpRequest, row: RestoreJob) -> dict[str, Any]:
        return restore_detail.context(row)
