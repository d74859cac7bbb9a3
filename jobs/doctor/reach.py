"""What a backup talks to: the storages and the servers of the registered databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings

from jobs import databases
from jobs.crypto import CannotDecrypt
from jobs.doctor.finding import Finding, broken, doubtful, well
from jobs.models import Database, Storage
from jobs.pgtools import binaries
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import NoClientTools, PgToolsError
from jobs.pgtools.toolset import Toolset
from jobs.storage.base import Probe, Store, StoreError
from jobs.stores import follow_settings, store_for
from jobs.targets import conninfo_for

AT_ONCE = 8

# Looks at one thing without using pgbr's own database, so that many may run in threads.
Look = Callable[[], Finding]


def storages() -> Iterator[Finding]:
    follow_settings()
    yield from _all([_storage_look(row) for row in Storage.objects.order_by("name")])


def servers(tools: Sequence[Toolset]) -> Iterator[Finding]:
    rows = Database.objects.select_related("user").order_by("name", "user_id")
    yield from _all([_server_look(row, tools) for row in rows])


def _all(looks: Sequence[Look]) -> Iterator[Finding]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda look: look(), looks)


def _storage_look(row: Storage) -> Look:
    subject = f"storage {row.name!r}"
    remedy = f"Check its settings, and {row.endpoint or row.bucket or row.folder or settings.BACKUP_FOLDER}."
    try:
        store = store_for(row)
    except CannotDecrypt as error:
        problem = broken(subject, str(error), remedy)
        return lambda: problem
    return lambda: _storage(subject, store, row.prefix, remedy)


def _storage(subject: str, store: Store, prefix: str, remedy: str) -> Finding:
    try:
        store.prepare()
    except StoreError as error:
        return broken(subject, str(error), remedy)
    probe = store.probe(prefix)
    if not probe.usable:
        return broken(subject, f"{probe.put or probe.get}", remedy)
    lacking = _lacking(probe)
    if lacking:
        allow = "Fine if that is meant; else allow it: deleting backups and retention need both."
        return doubtful(subject, f"stores and reads, but cannot {lacking}", allow)
    return well(subject, "stores, reads, lists and deletes")


def _lacking(probe: Probe) -> str:
    denied = {"list": probe.list, "delete": probe.delete}
    return "; cannot ".join(f"{name}: {reason}" for name, reason in denied.items() if reason)


def _server_look(row: Database, tools: Sequence[Toolset]) -> Look:
    subject = f"database {row.name!r}"
    try:
        conninfo = conninfo_for(row)
    except (PgToolsError, CannotDecrypt) as error:
        problem = broken(subject, str(error), "Enter its URL again.")
        return lambda: problem
    return lambda: _server(subject, conninfo, tools)


def _server(subject: str, conninfo: Conninfo, tools: Sequence[Toolset]) -> Finding:
    try:
        with databases.session(conninfo) as session:
            version = session.info.server_version
    except PgToolsError as error:
        return broken(subject, str(error), "Its backups fail until the login works again.")
    major = version // 10000
    where = f"PostgreSQL {major}.{version % 10000} at {conninfo.host_label}"
    try:
        chosen = binaries.choose(major, tools)
    except NoClientTools as error:
        return broken(subject, where, str(error))
    return well(subject, f"{where}, dumped by {chosen.label}")
