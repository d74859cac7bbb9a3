"""Restores and migrations from outside a job: order one, check it first, undo it."""

from jobs.restoring.checking import Check, check_migration, check_restore, contents_of, suggested_mode
from jobs.restoring.keeping import drop_kept, forget, kept, undo
from jobs.restoring.migrations import MigrationOrder, enqueue_migration, rerun_migration
from jobs.restoring.orders import RestoreOrder, enqueue_restore, rerun_restore

__all__ = [
    "Check",
    "MigrationOrder",
    "RestoreOrder",
    "check_migration",
    "check_restore",
    "contents_of",
    "drop_kept",
    "enqueue_migration",
    "enqueue_restore",
    "forget",
    "kept",
    "rerun_migration",
    "rerun_restore",
    "suggested_mode",
    "undo",
]
