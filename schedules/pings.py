"""Calls to people's monitors at the start and end of a schedule's backups: an outbox that follows from the
history, and is worked off apart from the jobs. Whatever a monitor does, the backup stays what it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from jobs import ending
from jobs.backoff import pause_after
from jobs.calling import CallFailed, NoAnswer, call
from jobs.models import BackupJob
from jobs.queue.rows import execute, rows
from jobs.units import in_bytes, in_time
from schedules import ping_sql
from schedules.models import PingKind, Schedule
from schedules.ping_urls import Pinged, addresses

LOCK_KEY = 0x70676272_70696E67  # "pgbrping"
BATCH, THREADS = 50, 8
LEASE_SECONDS = 120.0  # longer than a batch can take
PATIENCE_SECONDS = 3600.0
FIRST_PAUSE, LONGEST_PAUSE = 15.0, 600.0
KEEP_DAYS = 30
LONGEST_ERROR = 1000  # characters of a backup's error that go along

ANY_URL = ~Q(ping_start_url="") | ~Q(ping_success_url="") | ~Q(ping_failure_url="")
NO_ADDRESS = "The schedule has no address for it any more."
NEW_ADDRESS = "It was before the schedule had this address."
TOO_LATE = "The backup had ended before its start could be told."


@dataclass(frozen=True)
class Call:
    """A leased ping, and what to say to whom."""

    id: UUID
    backup_id: UUID
    kind: str
    attempts: int
    url: str
    text: str


def collect() -> int:
    """Put into the outbox what the last day's history gives cause for; how many. An upkeep duty."""
    pinged = Schedule.objects.filter(ANY_URL).only(
        "ping_start_url", "ping_success_url", "ping_failure_url"
    )  # fmt: skip
    wanted = [(schedule.id, kind) for schedule in pinged for kind in addresses(schedule)]
    if not wanted:
        return 0
    schedules, kinds = zip(*wanted, strict=True)
    return execute(ping_sql.COLLECT, {"schedules": list(schedules), "kinds": list(kinds)})


def pass_over(schedule_id: UUID, before: Pinged, after: Pinged) -> int:
    """A schedule is given other addresses: what has been so far is not told to kinds that had none."""
    kinds = sorted(addresses(after).keys() - addresses(before).keys())
    values = {"schedules": [schedule_id], "kinds": kinds, "reason": NEW_ADDRESS}
    return execute(ping_sql.PASS_OVER, values) if kinds else 0


def send_due() -> int:
    """Make the calls that are due; how many got through. An upkeep duty, safe to run in many workers at once.

    A call fails for good after an hour. No connection to the database is held meanwhile.
    """
    leased = _lease()
    calls = _calls(leased)
    _give_up(leased, {each.id for each in calls})
    connection.close()
    errors = _make(calls)
    for each in calls:
        _note(each.id, each.attempts, errors[each.id])
    return sum(error is None for error in errors.values())


def forget_old() -> int:
    """Remove what is older than 30 days from the outbox; how many. An upkeep duty."""
    return execute(ping_sql.FORGET, {"days": KEEP_DAYS, "batch": 10_000})


@transaction.atomic
def _lease() -> list[dict[str, Any]]:
    (lock,) = rows(ping_sql.TRY_LEASE_LOCK, {"key": LOCK_KEY})
    if not lock["got"]:
        return []
    execute(ping_sql.DROP_LATE_STARTS, {"reason": TOO_LATE})
    return rows(ping_sql.LEASE, {"batch": BATCH, "lease": LEASE_SECONDS})


def _calls(leased: Sequence[dict[str, Any]]) -> list[Call]:
    schedules = Schedule.objects.in_bulk({row["schedule_id"] for row in leased})
    backups = BackupJob.objects.defer("log", "manifest").in_bulk({row["backup_id"] for row in leased})
    calls = []
    for row in leased:
        schedule = schedules.get(row["schedule_id"])
        url = addresses(schedule).get(row["kind"]) if schedule else None
        if schedule and url:
            text = words(row["kind"], schedule, backups.get(row["backup_id"]))
            calls.append(Call(row["id"], row["backup_id"], row["kind"], row["attempts"], url, text))
    return calls


def words(kind: str, schedule: Schedule, backup: BackupJob | None) -> str:
    """What a monitor is told, in a line or two."""
    name = f"{backup.database_name} ({schedule.name}, {backup.id})" if backup else schedule.name
    if kind == PingKind.START:
        return f"Backup of {name} has started."
    if kind == PingKind.FAILURE:
        status = backup.status if backup else "failed"
        return f"Backup of {name}: {status}. {(backup and backup.error) or ''}".strip()[:LONGEST_ERROR]
    return f"Backup of {name} is completed{_figures(backup)}."


def _figures(backup: BackupJob | None) -> str:
    if backup is None or backup.size is None or not (backup.started_at and backup.completed_at):
        return ""
    took = (backup.completed_at - backup.started_at).total_seconds()
    return f": {in_bytes(backup.size)} in {in_time(took)}"


def _give_up(leased: Sequence[dict[str, Any]], called: set[UUID]) -> None:
    for row in leased:
        if row["id"] not in called:
            _failed(row["id"], row["attempts"], NO_ADDRESS, patience=0.0)


def _make(calls: Sequence[Call]) -> dict[UUID, str | None]:
    """The calls' errors, None where it got through. One backup's follow each other, others' do not wait."""
    runs: dict[UUID, list[Call]] = defaultdict(list)
    for each in sorted(calls, key=lambda each: each.kind != PingKind.START):
        runs[each.backup_id].append(each)
    silent: set[str] = set()
    errors: dict[UUID, str | None] = {}

    def work(run: list[Call]) -> None:
        for each in run:
            errors[each.id] = _try(each, silent)

    with ThreadPoolExecutor(THREADS, "ping") as pool:
        list(pool.map(work, runs.values()))
    return errors


def _try(each: Call, silent: set[str]) -> str | None:
    """A host that was silent a moment ago is not waited for again, or all of its schedules' calls would
    hold up everybody else's."""
    host = urlsplit(each.url).netloc
    if host in silent:
        return f"Not tried: {host} did not answer a moment ago."
    if ending.has_begun():
        return "Not tried: the worker was about to end."
    try:
        call(each.url, each.text)
    except CallFailed as error:
        if isinstance(error, NoAnswer):
            silent.add(host)
        return str(error)
    return None


def _note(ping: UUID, attempts: int, error: str | None) -> None:
    if error is None:
        execute(ping_sql.SENT, {"id": ping, "attempts": attempts})
    else:
        _failed(ping, attempts, error, patience=PATIENCE_SECONDS)


def _failed(ping: UUID, attempts: int, error: str, *, patience: float) -> None:
    pause = pause_after(attempts, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    values = {"id": ping, "attempts": attempts, "error": error, "pause": pause, "patience": patience}
    execute(ping_sql.FAILED, values)
