"""What the page of one backup shows, and what may be done with it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from jobs import trash
from jobs.admin import copies, formats
from jobs.admin.overview import good_backups
from jobs.admin.restore_source import Source
from jobs.copying import lonely
from jobs.models import BackupJob, QueuedJob
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.toolset import Toolset

LATEST = 18  # of the client tools, for a job that never got as far as choosing one


def context(backup: BackupJob) -> dict[str, Any]:
    words, command = _options(backup)
    return {
        "backup": backup,
        "words": words,
        "command": command,
        "copies": copies.shown(backup),
        "lonely": lonely(BackupJob.objects.filter(pk=backup.pk)).get(backup.pk),
        "can_download": can_download(backup),
        "looks_inside": Source(backup).has_contents,
        "can_delete": not undeletable([backup]),
        "leaves_at": trash.leaves_at(backup),
    }


def can_download(backup: BackupJob) -> bool:
    return backup.status == "completed" and any(copy.state == "good" for copy in backup.copies.all())


def undeletable(backups: list[BackupJob]) -> list[str]:
    """Why they cannot be deleted now."""
    ids = [backup.pk for backup in backups]
    jobs = QueuedJob.objects.filter(pk__in=ids, status__in=("pending", "active"))
    unended = set(jobs.values_list("pk", flat=True))
    return [
        f"{name(each)} has not ended yet: cancel it first."
        if each.pk in unended
        else f"{name(each)} is pinned: unpin it first."
        for each in backups
        if each.pinned or each.pk in unended
    ]


def losses(backup: BackupJob) -> list[str]:
    """What deleting it takes away, in sentences."""
    stored = [copy for copy in backup.copies.all() if copy.state != "failed"]
    if not stored:
        return [f"{name(backup)}, {backup.status}: its history and log. Nothing is stored of it."]
    places = ", ".join(copy.storage.name for copy in stored)
    lines = [f"{name(backup)}, {formats.size(backup.size)} in {places}, with its history and log."]
    if is_last_good(backup):
        lines.append(f"This is the last good backup of {backup.database_name}: afterwards there is none.")
    return lines


def is_last_good(backup: BackupJob) -> bool:
    mine = BackupJob.objects.filter(user_id=backup.user_id, database_name=backup.database_name)
    good = good_backups(mine)
    return good.filter(pk=backup.pk).exists() and not good.exclude(pk=backup.pk).exists()


def name(backup: BackupJob) -> str:
    moment = backup.started_at or backup.created_at
    return f"{backup.database_name} of {formats.exact(moment)}"


def _options(backup: BackupJob) -> tuple[str, str]:
    """In words, and as the command line; where to connect to is in the environment, so no secret is in it."""
    try:
        flags = DumpFlags.from_dict(backup.flags)
    except InvalidFlags as error:
        return f"not valid: {error}", ""
    version = str((backup.manifest or {}).get("client_version", ""))
    folder = Path("dump") if flags.format == "directory" else None
    try:
        return flags.in_words(), shlex.join(flags.argv(client_tools(version), folder))
    except InvalidFlags:
        return flags.in_words(), ""


def client_tools(version: str) -> Toolset:
    """Only the version matters for showing a command; "" is the newest."""
    known = re.match(r"(\d+)\.?(\d*)", version)
    major, minor = (known[1], known[2]) if known else (str(LATEST), "")
    codecs = frozenset({"none", "gzip"} | ({"zstd", "lz4"} if int(major) >= 16 else set()))
    return Toolset(int(major), (int(major), int(minor or 0)), Path(), None, codecs)
