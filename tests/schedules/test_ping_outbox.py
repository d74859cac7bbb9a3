"""What is to be told follows from the history: once, and of what has been since there is an address."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now

from jobs.models import BackupJob
from schedules import ping_sql, pings, services
from schedules.models import Schedule, SchedulePing
from schedules.ping_urls import addresses
from tests.schedules.conftest import MakeSchedule
from tests.schedules.monitor import Monitor
from tests.schedules.outbox import DAY, HOUR, monitor, pinged, run_of

__all__ = ["monitor", "pinged"]

pytestmark = pytest.mark.django_db(transaction=True)

CHECK = "https://hc-ping.com/0123abcd-0123-0123-0123-0123456789ab"


def kinds() -> list[str]:
    return sorted(SchedulePing.objects.values_list("kind", flat=True))


@pytest.mark.parametrize(
    ("status", "columns", "expected"),
    [
        ("pending", {"started_at": None}, []),
        ("running", {}, ["start"]),
        ("pending", {}, ["start"]),  # handed back: it had started
        ("completed", {}, ["start", "success"]),
        ("failed", {}, ["failure", "start"]),
        ("cancelled", {}, ["failure", "start"]),
        ("cancelled", {"started_at": None}, ["failure"]),
        ("completed", {"created_at": 5 * DAY, "started_at": 4 * DAY}, ["success"]),
        ("completed", {"started_at": 2 * DAY, "completed_at": DAY + HOUR}, []),
    ],
)
def test_outbox_follows_from_the_history(
    pinged: Schedule, status: str, columns: dict[str, Any], expected: list[str]
) -> None:
    run_of(pinged, status, **columns)

    assert pings.collect() == len(expected)
    assert kinds() == expected
    assert pings.collect() == 0


def test_only_what_the_schedule_has_an_address_for(make_schedule: MakeSchedule, monitor: Monitor) -> None:
    run_of(make_schedule("quiet"))
    run_of(make_schedule("loud", ping_failure_url=monitor.url), "failed")

    assert pings.collect() == 1
    assert kinds() == ["failure"]


def test_manual_backups_are_nobodys(pinged: Schedule) -> None:
    run_of(pinged)
    BackupJob.objects.update(schedule_id=None)

    assert pings.collect() == 0


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (("", CHECK, ""), (f"{CHECK}/start", CHECK, f"{CHECK}/fail")),
        (("", f"{CHECK}?rid=1", ""), (f"{CHECK}/start?rid=1", f"{CHECK}?rid=1", f"{CHECK}/fail?rid=1")),
        (
            ("", "https://hc-ping.com/key/nightly", ""),
            tuple(f"https://hc-ping.com/key/nightly{ending}" for ending in ("/start", "", "/fail")),
        ),
        (("", f"https://hc.example.com/ping/{CHECK[-36:]}", "https://x"), ("", None, "https://x")),
        (("", "https://kuma.example.com/api/push/abc?status=up", ""), ("", None, "")),
        (("", "https://example.com/key/nightly", ""), ("", None, "")),
    ],
)
def test_address_of_a_check_implies_the_others(
    make_schedule: MakeSchedule, urls: tuple[str, str, str], expected: tuple[str, str | None, str]
) -> None:
    start, success, failure = urls
    found = addresses(make_schedule(ping_start_url=start, ping_success_url=success, ping_failure_url=failure))

    told = dict(zip(("start", "success", "failure"), expected, strict=True)) | {"success": success}
    assert found == {kind: url for kind, url in told.items() if url}


def test_new_address_is_not_told_what_has_been(
    make_schedule: MakeSchedule, monitor: Monitor, user: User
) -> None:
    schedule = make_schedule()
    run_of(schedule, "failed")
    running = run_of(schedule, "running")
    plan = services.plan_of(schedule)
    urls = {"ping_start_url": f"{monitor.url}/start", "ping_failure_url": f"{monitor.url}/failure"}
    services.update(schedule, services.Plan(**(vars(plan) | urls)), by=user)

    assert pings.collect() == 0
    BackupJob.objects.filter(id=running.id).update(status="failed", completed_at=Now())
    assert pings.collect() == 1
    assert pings.send_due() == 1
    assert monitor.paths == ["/failure"]


def test_collecting_goes_by_the_index_of_a_schedules_runs(pinged: Schedule) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO backup_jobs (id, user_id, database_name, schedule_id, status, flags, warnings, log,"
            " created_at, late, pinned, trash_reason)"
            " SELECT gen_random_uuid(), %s, 'x', gen_random_uuid(), 'failed', '{}', '[]', '', now(), false,"
            " false, '' FROM generate_series(1, 5000)",
            [pinged.user_id],
        )
        cursor.execute("ANALYZE backup_jobs")
        values: dict[str, Any] = {"schedules": [pinged.id], "kinds": ["success"]}
        cursor.execute(f"EXPLAIN {ping_sql.COLLECT}", values)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "backup_jobs_schedule" in plan
    assert "Seq Scan on backup_jobs" not in plan


def test_old_rows_are_forgotten(pinged: Schedule) -> None:
    run_of(pinged)
    pings.collect()
    SchedulePing.objects.filter(kind="start").update(created_at=Now() - 31 * DAY)

    assert pings.forget_old() == 1
    assert kinds() == ["success"]
