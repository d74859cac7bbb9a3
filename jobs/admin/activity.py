"""What people did, read-only."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.admin.base import ReadOnlyAdmin, account
from jobs.models import ActivityEvent


@admin.register(ActivityEvent)
class ActivityAdmin(ReadOnlyAdmin[ActivityEvent]):
    list_display = ["moment", "username", "action", "object_type", "object_name", "more"]
    list_display_links = None
    list_filter = ["action", "object_type", "at"]
    search_fields = ["object_name", "object_id", "username"]
    actions = None
    owner_field = ""

    @admin.display(description="when", ordering="id")
    def moment(self, event: ActivityEvent) -> SafeString | str:
        return formats.when(event.at)

    @admin.display(description="detail")
    def more(self, event: ActivityEvent) -> str:
        detail = event.detail if isinstance(event.detail, dict) else {}
        return ", ".join(f"{key}: {value}" for key, value in detail.items() if value) or formats.NOTHING

    def get_list_filter(self, request: HttpRequest) -> list[str]:
        return [*self.list_filter, "username"] if account(request).is_superuser else list(self.list_filter)
