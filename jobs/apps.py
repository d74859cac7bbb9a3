from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Backups and jobs"

    def ready(self) -> None:
        from jobs import stores
        from jobs.queue.connections import limit_idle_transactions
        from pgbr import checks  # noqa: F401  registers them

        def follow_settings(**_: Any) -> None:
            stores.follow_settings()

        connection_created.connect(limit_idle_transactions)
        post_migrate.connect(follow_settings, sender=self, weak=False)
