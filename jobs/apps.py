from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Backups and jobs"

    def ready(self) -> None:
        from jobs import stores
        from pgbr import checks  # noqa: F401  registers them

        def follow_settings(**_: Any) -> None:
            stores.follow_settings()

        post_migrate.connect(follow_settings, sender=self, weak=False)
