"""Accounts. Only superusers manage them; what an account may touch follows from what it owns."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.forms import ModelForm
from django.http import HttpRequest

from jobs.admin.base import account
from jobs.services import record

if TYPE_CHECKING:
    BaseAdmin = UserAdmin[User]
else:
    BaseAdmin = UserAdmin

# Registered by the module that UserAdmin is imported from. Groups grant nothing here.
admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class AccountAdmin(BaseAdmin):
    list_display = ["username", "email", "is_active", "is_superuser", "last_login"]
    list_filter = ["is_active", "is_superuser"]
    search_fields = ["username", "email"]
    filter_horizontal = []
    readonly_fields = ["last_login", "date_joined"]
    fieldsets = [
        (None, {"fields": ["username", "email", "password"]}),
        ("What it may do", {"fields": ["is_active", "is_superuser"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm[User], change: bool) -> None:
        """Everyone who may log in works in this site: staff, in Django's words."""
        obj.is_staff = True
        super().save_model(request, obj, form, change)
        record(account(request), "change" if change else "add", obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"title": "Users"} | (extra_context or {}))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request)

    def _may(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)
