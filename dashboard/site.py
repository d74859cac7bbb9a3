"""The AdminSite under /admin/."""

from __future__ import annotations

from django.contrib.admin import AdminSite


class PgbrAdminSite(AdminSite):
    site_header = "pgbr"
    site_title = "pgbr"
    index_title = "Backups"
