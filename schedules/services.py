"""Making and changing schedules: the only way in from web and commands.

Each is one transaction and one write to the schedule's row, made while that row is locked: what the tick has
written meanwhile is never written over. `next_run_at` is computed anew only where expression, zone or enabled
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from jobs.models import Database
from jobs.queue.rows import rows
from jobs.services import NotFound, ServiceError, enqueue_backup, record, visible_to
from schedules import cron, pings, prune, sql
from schedules.models import Schedule, ScheduleStorage
from schedules.plans import Plan, Target, checked, plan_of, plan_to_copy, rules, targets_of
from schedules.policies import Policies
from schedules.retention import Policy

__all__ = [
    "Plan", "Target", "clone", "create", "delete", "find", "plan_of", "plan_to_copy", "run_now",
    "set_enabled", "update",
]  # fmt: skip

TIMING = ("cron_expression", "timezone", "enabled")


def find(user: User, name: str) -> Schedule:
    """By name, the user's own first. Raises `NotFound`."""
    own = Schedule.objects.select_related("database", "user")
    found = own.filter(user_id=user.pk, name=name).first()
    if found is None and user.is_superuser:
        candidates = list(own.filter(name=name)[:2])
        found = candidates[0] if len(candidates) == 1 else None
    if found is None:
        known = ", ".join(Schedule.objects.filter(user_id=user.pk).values_list("name", flat=True)[:10])
        raise NotFound(f"No schedule is called {name!r}. There is: {known or 'none yet (see add_schedule)'}.")
    return found


@transaction.atomic
def create(database: Database, plan: Plan, *, by: User) -> Schedule:
    """A new schedule of the database's owner. It fires at its next time, never at once.

    Raises `ServiceError`, `jobs.pgtools.errors.InvalidFlags`, `schedules.cron.CronError`.
    """
    if not visible_to(by, Database.objects.filter(id=database.id)).exists():
        raise NotFound(f"No database is called {database.name!r}.")
    columns = checked(plan, database)
    schedule = Schedule(user=database.user, database=database, **columns, next_run_at=_next(columns))
    try:
        with transaction.atomic():
            schedule.save(force_insert=True)
    except IntegrityError as error:
        raise _taken(columns["name"], error) from error
    _put_storages(schedule, plan.storages)
    record(by, "add", schedule, database=database.name)
    return schedule


@transaction.atomic
def update(schedule: Schedule, plan: Plan, *, by: User) -> Schedule:
    """The row as the plan has it, read anew. Raises as `create`, and for another database."""
    row = _locked(schedule, by)
    if schedule.database_id != row.database_id:
        raise ServiceError(
            f"The schedule {row.name!r} stays with the database {row.database.name!r}: make a new one for "
            "another database."
        )
    columns = checked(plan, row.database)
    old = _policies(row)
    changed = sorted(name for name, value in columns.items() if value != getattr(row, name))
    if targets_of(row) != list(plan.storages):
        changed.append("storages")
    if any(name in changed for name in TIMING):
        columns["next_run_at"] = _next(columns)
    _write(row, columns | {"broken": None})
    _put_storages(row, plan.storages)
    pings.pass_over(row.id, before=row, after=plan)
    record(by, "change", row, changed=changed)
    saved = Schedule.objects.select_related("database", "user").get(id=row.id)
    if (new := _policies(saved)) != old:
        prune.tightened(saved, old, new)
    return saved


@transaction.atomic
def set_enabled(schedule: Schedule, enabled: bool, *, by: User) -> Schedule:
    """Switch it on or off. Raises `NotFound`, and `schedules.cron.CronError` for one that cannot fire."""
    row = _locked(schedule, by)
    if row.enabled != enabled:
        timing = {"cron_expression": row.cron_expression, "timezone": row.timezone, "enabled": enabled}
        row.next_run_at = _next(timing)
        _write(row, {"enabled": enabled, "next_run_at": row.next_run_at, "broken": None})
        row.enabled, row.broken = enabled, None
        record(by, "enable" if enabled else "disable", row)
    return row


def clone(schedule: Schedule, name: str, *, by: User) -> Schedule:
    """The same again under another name, disabled and without pings. Raises as `create`."""
    row = _visible(schedule, by)
    return create(row.database, replace(plan_to_copy(row), name=name, enabled=False), by=by)


@transaction.atomic
def delete(schedule: Schedule, *, by: User) -> None:
    """Its backups stay, and nothing deletes them from now on. Raises `NotFound`."""
    row = _locked(schedule, by)
    record(by, "delete", row, database=row.database.name)
    row.delete()


@transaction.atomic
def run_now(schedule: Schedule, *, by: User) -> UUID:
    """Queue a run beside the planned ones; the job's id. Raises `ServiceError`, `InvalidFlags`."""
    row = _visible(schedule, by)
    first = next(iter(targets_of(row)), None)
    storage = first.storage if first else None
    job_id = enqueue_backup(row.database, row.flags, by=by, storage=storage, schedule_id=row.id)
    record(by, "run", row, job=str(job_id))
    return job_id


def _visible(schedule: Schedule, by: User) -> Schedule:
    found = visible_to(by, Schedule.objects.select_related("database__user")).filter(id=schedule.id).first()
    if found is None:
        raise NotFound(f"There is no schedule {schedule.name!r} any more.")
    return found


def _locked(schedule: Schedule, by: User) -> Schedule:
    """Read anew, and nobody else changes it until the transaction ends."""
    list(Schedule.objects.select_for_update().filter(id=schedule.id).values_list("id"))
    return _visible(schedule, by)


def _write(row: Schedule, columns: Mapping[str, Any]) -> None:
    try:
        with transaction.atomic():
            Schedule.objects.filter(id=row.id).update(**columns)
    except IntegrityError as error:
        raise _taken(columns["name"], error) from error


def _put_storages(schedule: Schedule, targets: Sequence[Target]) -> None:
    ScheduleStorage.objects.filter(schedule=schedule).delete()
    ScheduleStorage.objects.bulk_create(
        ScheduleStorage(schedule=schedule, storage=each.storage, position=place, **rules(each.policy))
        for place, each in enumerate(targets)
    )


def _policies(row: Schedule) -> Policies:
    """What is in force. In a row with an unknown time zone nothing is: nothing was deleted by it."""
    try:
        return Policies.of(row)
    except cron.CronError:
        return Policies(Policy())


def _next(timing: Mapping[str, Any]) -> datetime | None:
    """By the database's clock as it is after the lock was got, or a slot that just fired would come again."""
    if not timing["enabled"]:
        return None
    (row,) = rows(sql.CLOCK, {})
    return cron.next_run(timing["cron_expression"], timing["timezone"], row["now"])


def _taken(name: str, error: IntegrityError) -> ServiceError:
    if "schedules_name_per_user" not in str(error):
        raise error
    return ServiceError(f"There is a schedule called {name!r} already: choose another name.")
