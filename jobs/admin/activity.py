"""What people did, read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.base import ReadOnlyAdmin, account
from jobs.admin.filters import DateFilter
from jobs.models import ActivityEvent


@admin.register(ActivityEvent)
class ActivityAdmin(ReadOnlyAdmin[ActivityEvent]):
    list_display = ["moment", "username", "action", "object_type", "object_name", "more"]
    list_display_links = None
    list_filter = ["action", "object_type", ("at", DateFilter)]
    search_fields = ["object_name", "object_id", "username"]
    actions = None
    owner_field = ""
    page_title = "Activity"
    list_select_related = False

    @admin.display(description="when", ordering="id")
    def moment(self, event: ActivityEvent) -> SafeString | str:
        return formats.when(event.at)

    @admin.display(description="detail")
    def more(self, event: ActivityEvent) -> str:
        detail = event.detail if isinstance(event.detail, dict) else {}
        return ", ".join(f"{key}: {value}" for key, value in detail.items() if value) or formats.NOTHING

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        filters = super().get_list_filter(request)
        return [*filters, "username"] if account(request).is_superuser else filters
