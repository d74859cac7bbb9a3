"""The backup processor: one pg_dump from a registered database into one storage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.db.utils import Error

from jobs import scratch
from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.models.instance import instance_key
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import PgToolsError
from jobs.pgtools.flags import DumpFlags
from jobs.processors import copies, slots
from jobs.processors.artifact import Sink
from jobs.processors.base import JobFailed, Outcome, VerdictUnknown
from jobs.processors.control import Control
from jobs.processors.dump import Dump
from jobs.processors.explained import explained
from jobs.processors.globals import dump_globals
from jobs.processors.manifest import as_bytes, facts_as_json, manifest
from jobs.processors.payload import uuid_in
from jobs.processors.progress import Meter, reporting
from jobs.processors.source import Source, examine
from jobs.queue.rows import Job
from jobs.storage.base import Store, StoreError
from jobs.storage.keys import globals_key, manifest_key, object_key
from jobs.stores import default_storage, store_for, usable_by
from jobs.targets import conninfo_for, remember_facts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """What a payload asks for, looked up; nothing in it is taken on trust."""

    database: Database
    conninfo: Conninfo
    flags: DumpFlags
    storage: Storage
    store: Store
    leftovers: list[BackupCopy]
    started_at: datetime


class BackupProcessor:
    @contextmanager
    def work(self, job: Job, control: Control) -> Iterator[Outcome]:
        order = control.patiently(partial(_order, job))
        for copy in order.leftovers:
            _clear(copy)
        with (
            explained(control, order.conninfo.secrets),
            scratch.folder(f"{job.queue}-{job.id.hex[:8]}") as folder,
        ):
            scratch.sweep_orphans()
            source = examine(order.conninfo, order.flags, folder, f"pgbr/{job.id}", control)
            control.check()
            order.store.prepare()
            with slots.held(order.conninfo, order.database.max_parallel, job, folder, control) as warnings:
                source = replace(source, warnings=[*source.warnings, *warnings])
                with _stored(job, order, source, folder, control) as outcome:
                    yield outcome


# What is asked -----------------------------------------------------------------------------------


def _order(job: Job) -> Order:
    """Raises `JobFailed` for a payload that is not the expected shape or names what is not there."""
    payload = job.payload
    if not isinstance(payload, dict) or not isinstance(payload.get("flags"), dict):
        raise JobFailed(
            "The job's payload is not of the expected shape (an object with database_id and flags)."
        )
    database = _database(job, payload)
    storage = _storage(database, payload)
    try:
        return Order(
            database=database,
            conninfo=conninfo_for(database),
            flags=DumpFlags.from_dict(payload["flags"]),
            storage=storage,
            store=store_for(storage),
            leftovers=copies.leftovers(job),
            started_at=BackupJob.objects.values_list("started_at", flat=True).get(id=job.id)
            or datetime.now(UTC),
        )
    except (PgToolsError, CannotDecrypt) as error:
        raise JobFailed(str(error)) from error


def _database(job: Job, payload: dict[str, Any]) -> Database:
    wanted = uuid_in(payload, "database_id")
    found = Database.objects.select_related("user", "storage").filter(id=wanted, user_id=job.user_id).first()
    if found is None:
        name = payload.get("database_name")
        raise JobFailed(
            f"The database {name!r} is not registered any more (id {wanted}). Add it again to back it up."
        )
    return found


def _storage(database: Database, payload: dict[str, Any]) -> Storage:
    if "storage_id" not in payload:
        return database.storage or default_storage()
    wanted = uuid_in(payload, "storage_id")
    found = usable_by(database.user).filter(id=wanted).first()
    if found is None:
        raise JobFailed(
            f"The storage {wanted} that this job names does not exist any more. Choose another one."
        )
    return found


# Doing it ----------------------------------------------------------------------------------------


@contextmanager
def _stored(job: Job, order: Order, source: Source, folder: Path, control: Control) -> Iterator[Outcome]:
    """The dump stored with its manifest; taken away again if the verdict inside cannot be written."""
    name = order.database.name
    key = object_key(
        order.storage.prefix, name, order.started_at, job.id, job.claim_id, order.flags.extension()
    )
    copy = control.patiently(lambda: copies.begin(job, order.storage, key))
    try:
        yield _store(job, order, source, folder, control, copy)
    except VerdictUnknown:
        raise
    except BaseException:
        _clear(copy)
        raise


def _clear(copy: BackupCopy) -> None:
    """Should the database be away, the sweep does it; why the job ended must not be lost to that."""
    try:
        copies.clear(copy)
    except Error as error:
        log.warning("%s is left to the sweep: %s", copy.storage_key, error, extra={"job": copy.backup_id})


def _store(
    job: Job, order: Order, source: Source, folder: Path, control: Control, copy: BackupCopy
) -> Outcome:
    environment = order.conninfo.environment(folder, f"pgbr/{job.id}") | source.toolset.environment()
    globals_sql, warning = dump_globals(source, folder, environment, control)
    warnings = [*source.warnings, *([warning] if warning else [])]
    dump = Dump(source, order.flags, folder, environment, control, order.database.max_duration)
    try:
        sink = _stream(job, order, dump, control, copy)
        content = manifest(
            job, order.database.name, source, order.flags,
            instance=control.patiently(instance_key),
            key=copy.storage_key, size=sink.meter.bytes, sha256=sink.sha256, globals_sql=globals_sql,
            started_at=order.started_at, ended_at=datetime.now(UTC),
        )  # fmt: skip
        if globals_sql:
            order.store.put_bytes(globals_key(copy.storage_key), globals_sql, stop=control.stopped)
        order.store.put_bytes(manifest_key(copy.storage_key), as_bytes(content), stop=control.stopped)
    except (PgToolsError, StoreError, JobFailed) as error:
        control.check()
        raise JobFailed(str(error), log=dump.log, warnings=warnings) from error

    def also() -> None:
        copies.mark_good(copy.id, size=sink.meter.bytes, sha256=sink.sha256, has_globals=bool(globals_sql))
        remember_facts(order.database, facts_as_json(source))

    columns = {"storage_key": copy.storage_key, "size": sink.meter.bytes, "sha256": sink.sha256}
    return Outcome(columns | {"manifest": content, "log": dump.log, "warnings": warnings}, also)


def _stream(job: Job, order: Order, dump: Dump, control: Control, copy: BackupCopy) -> Sink:
    meter = Meter(order.database.bandwidth_limit, control.wait)
    with order.store.writer(
        copy.storage_key,
        size_hint=dump.source.facts.size_bytes,
        on_token=partial(copies.remember_token, copy, control),
        stop=control.stopped,
    ) as writer:
        sink = Sink(writer, control, meter)
        with reporting(job, control, dump.snapshot):
            dump.run(sink)
        if not meter.bytes:
            raise JobFailed("pg_dump ended well but wrote nothing; this is no backup.", log=dump.log)
        writer.commit()
    return sink
