"""The admin, one module for each model. Importing them registers them."""

from jobs.admin import activity, backups, databases, queue, storages, uploads, workers

__all__ = ["activity", "backups", "databases", "queue", "storages", "uploads", "workers"]
