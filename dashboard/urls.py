from django.urls import URLPattern, path

from dashboard.views import downloads, health, login_link, uploads

urlpatterns: list[URLPattern] = [
    path("api/health", health.health, name="health"),
    path("api/ready", health.ready, name="ready"),
    path("api/status", health.status, name="status"),
    path("api/backups/<uuid:backup_id>/download", downloads.download, name="download-backup"),
    path("api/uploads", uploads.collection, name="uploads"),
    path("api/uploads/<uuid:upload_id>", uploads.single, name="upload"),
    path("login/<uidb64>/<token>/", login_link.LoginLink.as_view(), name="login-link"),
]
