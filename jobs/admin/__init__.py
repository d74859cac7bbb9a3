"""The admin, one module for each model. Importing them registers them."""

from jobs.admin import (
    activity,
    backups,
    databases,
    migrations,
    queue,
    restores,
    storages,
    uploads,
    workers,
)

__all__ = [
    "activity",
    "backups",
    "databases",
    "migrations",
    "queue",
    "restores",
    "storages",
    "uploads",
    "workers",
]
