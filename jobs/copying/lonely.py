"""Backups that would be lost together with what they protect from the loss of."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import QuerySet

from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.models.storage import CopyState, StorageKind
from jobs.pgtools.errors import PgToolsError
from jobs.targets import conninfo_for

OURS, THEIRS = "the machine that pgbr runs on", "the machine of the database itself"
OF_A_SCHEDULE = "Add a storage elsewhere to the schedule."
BY_HAND = "Let the database name a storage elsewhere, or a schedule copy its backups to one."


def lonely(backups: QuerySet[BackupJob]) -> dict[UUID, str]:
    """A notice in words for each of them whose good copies all lie on the machine of its database or of pgbr:
    in a folder, or in a store on such a machine. A mounted folder counts as here too:
    nothing tells whose it is. Three queries, however many there are."""
    states = (CopyState.GOOD, CopyState.WRITING, CopyState.FAILED)
    copies = BackupCopy.objects.filter(backup__in=backups.values("id"), state__in=states)
    stored: dict[UUID, list[BackupCopy]] = {}
    for copy in copies.select_related("storage", "backup").order_by("created_at"):
        stored.setdefault(copy.backup_id, []).append(copy)
    wanted = {held[0].backup.database_id for held in stored.values()}
    databases = Database.objects.filter(id__in=[known for known in wanted if known])
    hosts: dict[UUID | None, frozenset[str]] = {
        row.id: _database_hosts(row) for row in databases.select_related("user")
    }
    notices = {}
    for backup_id, held in stored.items():
        near = hosts.get(held[0].backup.database_id, frozenset())
        good = [copy.storage for copy in held if copy.state == CopyState.GOOD]
        notice = _notice(good, near) if good else None
        if notice:
            coming = [copy.storage for copy in held if copy.state != CopyState.GOOD]
            notices[backup_id] = f"{notice} {_advice(held[0].backup, coming, near)}"
    return notices


def _notice(storages: list[Storage], hosts: frozenset[str]) -> str | None:
    places = [_place(storage, hosts) for storage in storages]
    if None in places:
        return None
    names = " and ".join(sorted({repr(storage.name) for storage in storages}))
    machines = " and ".join(sorted({str(place) for place in places}))
    subject = f"The only copy (in {names}) lies" if len(storages) == 1 else f"All copies (in {names}) lie"
    return f"{subject} on {machines}: who loses that loses the backup."


def _advice(backup: BackupJob, coming: list[Storage], hosts: frozenset[str]) -> str:
    far = sorted({repr(storage.name) for storage in coming if _place(storage, hosts) is None})
    if far:
        return f"The copy in {' and '.join(far)} is still to be made."
    return OF_A_SCHEDULE if backup.schedule_id else BY_HAND


def _place(storage: Storage, hosts: frozenset[str]) -> str | None:
    """None: elsewhere, as far as its address tells."""
    if storage.kind == StorageKind.FOLDER:
        return OURS
    host = (urlsplit(storage.endpoint).hostname or "").lower()
    if _is_here(host):
        return OURS
    return THEIRS if host in hosts else None


def _is_here(host: str) -> bool:
    if host in ("localhost", socket.gethostname().lower()):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _database_hosts(database: Database) -> frozenset[str]:
    """Names and addresses, as its URL has them; none if it cannot be read."""
    try:
        conninfo = conninfo_for(database)
    except (CannotDecrypt, PgToolsError):
        return frozenset()
    return _names((conninfo.host, conninfo.options.get("hostaddr", "")))


def _names(lists: Iterable[str]) -> frozenset[str]:
    return frozenset(name.strip().lower() for names in lists for name in names.split(",") if name.strip())
