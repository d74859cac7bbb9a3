"""The AdminSite under /admin/, whose index is the dashboard."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.http import HttpRequest

# Sections of the navigation, in this order; a model that no section names follows in "More".
SECTIONS = (
    ("Backups", ("Database", "BackupJob", "Schedule", "RestoreJob", "MigrationJob", "Upload", "Storage")),
    ("Operations", ("QueuedJob", "WorkerProcess", "ActivityEvent")),
    ("Accounts", ("User",)),
)
# Shorter than what Django makes of the classes.
NAMES = {"QueuedJob": "Queue", "WorkerProcess": "Workers", "ActivityEvent": "Activity"}


class PgbrAdminSite(AdminSite):
    site_header = "pgbr"
    site_title = "pgbr"
    index_title = "Overview"
    site_url = None
    empty_value_display = "\u2013"  # an en dash
    enable_nav_sidebar = False

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # What a deletion takes away differs from row to row: each page says so and asks.
        self.disable_action("delete_selected")

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        # Here, because registering the models' admins needs this class.
        from dashboard import queries
        from jobs.admin.base import account

        return super().index(request, queries.home(account(request)) | (extra_context or {}))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Says how to get in as long as nobody can."""
        claimed = any(user.has_usable_password() for user in User.objects.order_by("pk")[:20])
        return super().login(request, {"unclaimed": not claimed} | (extra_context or {}))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Grouped by purpose, not by Django's applications."""
        apps: list[Any] = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        models = {model["object_name"]: model for app in apps for model in app["models"]}
        for key, model in models.items():
            model["name"] = NAMES.get(key, model["name"])
        found = [(title, [models.pop(name) for name in names if name in models]) for title, names in SECTIONS]
        found.append(("More", list(models.values())))
        return [_section(title, rows) for title, rows in found if rows]


def _section(title: str, models: list[Any]) -> dict[str, Any]:
    """As Django's templates take an application."""
    return {
        "name": title,
        "app_label": title.lower(),
        "app_url": "",
        "has_module_perms": True,
        "models": models,
    }
