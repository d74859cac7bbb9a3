from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Backups and jobs"

    def ready(self) -> None:
        from pgbr import checks  # noqa: F401  registers them
