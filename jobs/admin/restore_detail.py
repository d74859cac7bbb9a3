"""What the page of one restore shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from jobs.admin.backup_detail import client_tools
from jobs.admin.restore_forms import IN_WORDS
from jobs.admin.restore_history import can_drop, can_undo, target_in_words, what_is_kept
from jobs.admin.restore_source import Source, source_of
from jobs.models import RestoreJob
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.restore_flags import PARALLEL_FORMATS, RestoreFlags


def context(restore: RestoreJob) -> dict[str, Any]:
    source = source_of(restore)
    words, command = options(restore, source)
    return {
        "restore": restore,
        "about": target_in_words(restore.database_name, restore.target_name),
        "source": source,
        "mode": IN_WORDS.get(restore.mode, restore.mode),
        "words": words,
        "command": command,
        "what_is_kept": what_is_kept(restore),
        "can_undo": can_undo(restore),
        "can_drop": can_drop(restore),
    }


def options(restore: RestoreJob, source: Source | None) -> tuple[str, str]:
    """In words, and as the command line; where to connect to is in the environment, so no secret is in it."""
    try:
        flags = RestoreFlags.from_dict(restore.flags)
    except InvalidFlags as error:
        return f"not valid: {error}", ""
    words = flags.in_words() or "everything, as it was"
    if source is None or source.format not in ("custom", "tar", "directory"):
        return words, ""
    return words, _command(restore, flags, source.format)


def _command(restore: RestoreJob, flags: RestoreFlags, format: str) -> str:
    single = flags.in_one_transaction(restore.mode)
    try:
        argv = flags.argv(
            client_tools(""),
            source=Path("dump"),
            format=format,
            dbname=restore.target_name,
            list_file=Path("chosen.list") if flags.selects else None,
            jobs=1 if single or format not in PARALLEL_FORMATS else max(flags.jobs, 1),
            single_transaction=single,
        )
    except (InvalidFlags, ValueError):
        return ""
    return shlex.join(argv)
