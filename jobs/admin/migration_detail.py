"""What the page of one migration shows."""

from __future__ import annotations

from typing import Any

from jobs.admin.migration_forms import WAYS
from jobs.admin.restore_forms import IN_WORDS
from jobs.admin.restore_history import can_drop, can_undo, target_in_words, what_is_kept
from jobs.models import MigrationJob
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.restore_flags import RestoreFlags


def context(migration: MigrationJob) -> dict[str, Any]:
    flags = migration.flags if isinstance(migration.flags, dict) else {}
    return {
        "migration": migration,
        "about": ends_in_words(migration),
        "mode": IN_WORDS.get(migration.mode, migration.mode),
        "way": WAYS["staged" if flags.get("staged") else "stream"],
        "dump_words": _in_words(DumpFlags, flags.get("dump")),
        "restore_words": _in_words(RestoreFlags, flags.get("restore")),
        "what_is_kept": what_is_kept(migration),
        "can_undo": can_undo(migration),
        "can_drop": can_drop(migration),
    }


def ends_in_words(migration: MigrationJob) -> str:
    """ "shop → shop2 (shop_copy)"."""
    target = target_in_words(migration.target_database_name, migration.target_name)
    return f"{migration.source_database_name or 'a URL'} → {target or 'a URL'}"


def _in_words(kind: type[DumpFlags] | type[RestoreFlags], values: Any) -> str:
    try:
        flags = kind.from_dict(values or {})
    except InvalidFlags as error:
        return f"not valid: {error}"
    return flags.in_words() or "everything, as it was"
