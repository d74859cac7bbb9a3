from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class DashboardConfig(AppConfig):
    name = "dashboard"


class PgbrAdminConfig(AdminConfig):
    default_site = "dashboard.site.PgbrAdminSite"
