"""Ordering a migration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import Database, MigrationJob
from jobs.models.base import Queue
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.processors.migration import dump_flags, flags_problems
from jobs.restoring.orders import refuse_protected, require_target, require_visible
from jobs.secrets import seal, unseal
from jobs.services import ServiceError, enqueue, record
from jobs.targets import conninfo_for, parse


@dataclass(frozen=True)
class MigrationOrder:
    """`source` and `target`: a registered database, or a URL. Into the database `target_name` on the
    target's server. `staged`: over this machine's disk, in parallel. Flags as `DumpFlags` and `RestoreFlags`
    take them, without the dump's format and compression, which pgbr chooses."""

    source: Database | str
    target: Database | str
    mode: str
    target_name: str
    dump_flags: Mapping[str, Any] = field(default_factory=dict)
    restore_flags: Mapping[str, Any] = field(default_factory=dict)
    staged: bool = False


@transaction.atomic
def enqueue_migration(order: MigrationOrder, *, by: User, owner: User | None = None) -> UUID:
    """Queue it; the job's id. It belongs to `owner`, else to that of the registered databases, else to `by`.

    URLs are sealed in the history row, which is made here. Raises `InvalidFlags` with every problem,
    `InvalidConninfo`, `NotFound`, `ServiceError`.
    """
    owner = owner or _owner(order, by)
    if any(isinstance(end, Database) and end.user_id != owner.pk for end in (order.source, order.target)):
        raise ServiceError("Source and target belong to different accounts. Register both for one account.")
    source, target = ends(order, by, owner)
    require_target(order.mode, order.target_name)
    flags = _flags(order)
    refuse_protected(target, order.target_name)
    payload = {"mode": order.mode, "target_name": order.target_name, "flags": flags}
    payload |= _named("source", order.source, source) | _named("target", order.target, target)
    job_id = enqueue(Queue.MIGRATION, owner.pk, payload)
    MigrationJob.objects.create(
        id=job_id,
        user=owner,
        mode=order.mode,
        target_name=order.target_name,
        flags=flags,
        **_columns("source", order.source, payload),
        **_columns("target", order.target, payload),
    )
    subject = order.target if isinstance(order.target, Database) else MigrationJob(id=job_id)
    record(by, "migrate", subject, job=str(job_id), mode=order.mode, target=order.target_name)
    return job_id


def rerun_migration(row: MigrationJob, *, by: User) -> UUID:
    """A new job like an old one. Raises `ServiceError` when a database is not registered any more."""
    flags = row.flags
    order = MigrationOrder(
        _end(row, "source"),
        _end(row, "target"),
        row.mode,
        row.target_name,
        flags.get("dump", {}),
        flags.get("restore", {}),
        flags.get("staged") is True,
    )
    return enqueue_migration(order, by=by, owner=row.user)


def ends(order: MigrationOrder, by: User, owner: User | None = None) -> tuple[Conninfo, Conninfo]:
    """How to reach source and target. Raises `NotFound`, `InvalidConninfo`, `CannotDecrypt`."""
    return _reach(order.source, by, owner or by), _reach(order.target, by, owner or by)


def _reach(end: Database | str, by: User, owner: User) -> Conninfo:
    """What a URL may lend of the worker depends on whose job it is."""
    if isinstance(end, Database):
        require_visible(end, by)
        return conninfo_for(end)
    return parse(end, owner=owner)


def _owner(order: MigrationOrder, by: User) -> User:
    owners = {end.user_id: end.user for end in (order.source, order.target) if isinstance(end, Database)}
    given_urls = isinstance(order.source, str) or isinstance(order.target, str)
    # A URL is of whoever gives it, and so is the job then.
    return by if given_urls else next(iter(owners.values()))


def _flags(order: MigrationOrder) -> dict[str, Any]:
    dump = dump_flags(order.dump_flags, staged=order.staged).to_dict()
    dump.pop("format", None)
    restore = RestoreFlags.from_dict(order.restore_flags)
    if problems := flags_problems(restore, order.mode, staged=order.staged):
        raise InvalidFlags(problems)
    found = {"dump": dump, "restore": restore.to_dict()}
    return {**found, "staged": True} if order.staged else {**found}


def _named(side: str, end: Database | str, conninfo: Conninfo) -> dict[str, Any]:
    if isinstance(end, Database):
        return {f"{side}_database_id": str(end.id), f"{side}_database_name": end.name}
    return {f"{side}_database_name": f"{conninfo.dbname} at {conninfo.host_label}"[:100]}


def _columns(side: str, end: Database | str, payload: Mapping[str, Any]) -> dict[str, Any]:
    named = {f"{side}_database_name": payload[f"{side}_database_name"][:100]}
    if isinstance(end, Database):
        return named | {f"{side}_database": end}
    return named | {f"{side}_sealed_url": seal(end.strip())}


def _end(row: MigrationJob, side: str) -> Database | str:
    sealed: str = getattr(row, f"{side}_sealed_url")
    if sealed:
        return unseal(sealed, f"The URL of the {side}")
    database: Database | None = getattr(row, f"{side}_database")
    if database is None:
        raise ServiceError(
            f"The {side} {getattr(row, f'{side}_database_name')!r} is not registered any more."
        )
    return database
