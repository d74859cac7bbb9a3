"""Accounts. Only superusers manage them; what an account may touch follows from what it owns."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import PROTECT
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from jobs.admin.base import account
from jobs.admin.deletion import Plan, confirmed
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

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        user = self.get_object(request, object_id)
        if user is None or not self._may(request):
            raise Http404(f"There is no user {object_id}.")

        def destroy() -> HttpResponseBase:
            record(account(request), "delete", user)
            user.delete()
            messages.success(request, f"The account {user.username} is gone.")
            return redirect("admin:auth_user_changelist")

        plan = _deletion(user, by=account(request))
        return confirmed(self, request, plan, destroy, back=reverse("admin:auth_user_change", args=[user.pk]))

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


def _deletion(user: User, *, by: User) -> Plan:
    blocked = [f"It owns {what}. Delete them first, or make the account inactive." for what in _owned(user)]
    if user == by:
        blocked = ["It is your own account."]
    return Plan(
        title=f"Delete the account {user.username}",
        word=user.username,
        lost=["The account and its sessions."],
        kept=["What it did stays in the activity, by name."],
        blocked=blocked,
    )


def _owned(user: User) -> list[str]:
    """ "3 databases", for every kind of object whose rows keep their owner from being deleted."""
    kinds = [link for link in user._meta.related_objects if link.on_delete is PROTECT]
    counts = [
        (link, link.related_model._default_manager.filter(**{link.field.name: user}).count())
        for link in kinds
    ]
    return [f"{count} {link.related_model._meta.verbose_name_plural}" for link, count in counts if count]
