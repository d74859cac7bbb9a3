"""The page of a schedule, and what others show of it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from dashboard.middleware import POLICY
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob
from schedules import services
from schedules.admin.timing import local
from schedules.models import Schedule, SchedulePing, SkippedSlot
from schedules.plans import Target
from schedules.retention import Policy
from tests.admin.conftest import Belongings, stored_backup
from tests.dashboard.test_pages import INLINE
from tests.schedules.admin.conftest import ADD, LIST, planned, step_of
from tests.schedules.admin.test_form import storage_of


def page(owned: Belongings, url: str) -> str:
    return owned.client.get(url).content.decode()


def run_of(schedule: Schedule, owned: Belongings, **columns: Any) -> BackupJob:
    return stored_backup(schedule.database, owned.storage, schedule_id=schedule.pk, **columns)


def test_the_page_shows_what_comes_next_and_what_was(ada: Belongings, nightly: Schedule) -> None:
    slot = timezone.now() - timedelta(days=1)
    backup = run_of(nightly, ada, slot=slot, late=True)
    services.run_now(nightly, by=ada.user)
    SkippedSlot.objects.create(
        schedule=nightly, slot=slot, reason="the previous one was running", backup=backup
    )
    text = page(ada, step_of(nightly))
    assert "healthy" in text
    assert "At 02:30" in text
    assert text.count("data-instant=") == 5
    assert f"/admin/jobs/backupjob/{backup.pk}/change/" in text
    assert text.count(f">{local(slot, nightly.timezone)}</time>") == 2  # the run, and what was skipped
    assert "late" in text
    assert "waiting" in text
    assert "the previous one was running" in text
    assert "The only copy (in &#x27;store-ada&#x27;) lies on the machine that pgbr runs on" in text


def test_the_first_of_the_next_runs_is_when_it_fires(ada: Belongings, nightly: Schedule) -> None:
    due = timezone.now().replace(microsecond=0) + timedelta(minutes=3)
    Schedule.objects.update(next_run_at=due)
    runs = ada.client.get(step_of(nightly)).context["reading"].runs
    assert runs[0] == due
    assert len(runs) == 5
    assert runs == sorted(runs)


def test_one_that_is_off_or_broken_promises_nothing(ada: Belongings, nightly: Schedule) -> None:
    services.set_enabled(nightly, False, by=ada.user)
    text = page(ada, step_of(nightly))
    assert "Nothing until it is enabled" in text
    assert 'value="yes"' in text
    Schedule.objects.update(enabled=True, broken="minute: 61 is too high", cron_expression="61 2 * * *")
    text = page(ada, step_of(nightly))
    assert "minute: 61 is too high" in text
    assert "it cannot run as it is" in text


@pytest.mark.parametrize(
    "column",
    [
        {"cron_expression": "x" * 200}, {"cron_expression": ""}, {"timezone": "\x01<b>"}, {"flags": ["x"]},
        {"flags": {"format": {"a": 1}, "tables": 7}}, {"flags": "x"}, {"overlap": "what"},
        {"timezone": "Asia/Tokyo", "next_run_at": "8999-12-31T23:59:59Z"},
    ],
)  # fmt: skip
def test_whatever_was_written_into_a_row_by_hand_its_pages_open(
    ada: Belongings, nightly: Schedule, column: dict[str, Any]
) -> None:
    Schedule.objects.update(**column)
    for broken in (None, "It cannot be read."):
        Schedule.objects.update(broken=broken)
        for url in (LIST, "/admin/", *(step_of(nightly, step) for step in ("change", "edit", "delete"))):
            assert ada.client.get(url).status_code == 200, url
    for step in ("enable", "run", "clone"):
        assert ada.client.post(step_of(nightly, step)).status_code == 302, step


def test_flags_that_python_cannot_read_take_no_page_down(ada: Belongings, nightly: Schedule) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backup_schedules SET flags = %s::jsonb", ["[" * 5000 + "]" * 5000])
    for url in (LIST, "/admin/", *(step_of(nightly, step) for step in ("change", "edit", "delete"))):
        assert ada.client.get(url).status_code == 200, url


def test_trouble_is_shown_with_its_reason(ada: Belongings) -> None:
    far = storage_of(ada, "far")
    made = planned(
        ada,
        storages=[Target(ada.storage), Target(far, Policy(keep_monthly=12))],
        policy=Policy(keep_daily=7),
        ping_success_url="https://monitor.test/ok",
    )
    backup = run_of(made, ada)
    BackupCopy.objects.create(
        backup=backup, storage=far, is_first=False, state="failed", storage_key="x", error="the disk is gone",
        next_attempt_at=timezone.now() + timedelta(hours=3), attempts=4,
    )  # fmt: skip
    SchedulePing.objects.create(
        schedule=made, backup_id=backup.pk, kind="success", error="timed out", next_attempt_at=None
    )
    SchedulePing.objects.create(schedule=made, backup_id=uuid4(), kind="start", sent_at=timezone.now())
    Schedule.objects.update(retention_error="store-ada is away")
    text = page(ada, step_of(made))
    for part in (
        "1 copy lagging", "the disk is gone", "failed 4 times", "in 3 hours", "12 monthly", "7 daily",
        "given up", "timed out", "sent", "https://monitor.test/ok", "store-ada is away",
    ):  # fmt: skip
        assert part in text, part


def test_a_copy_that_waits_for_its_next_try_is_not_called_being_written(
    ada: Belongings, nightly: Schedule
) -> None:
    BackupCopy.objects.create(
        backup=run_of(nightly, ada), storage=storage_of(ada, "far"), is_first=False, state="writing",
        storage_key="x", error="it is away", next_attempt_at=timezone.now() + timedelta(hours=3), attempts=2,
    )  # fmt: skip
    (copy,) = ada.client.get(step_of(nightly)).context["lagging"]
    assert (copy.word, copy.again) == ("waiting", copy.copy.next_attempt_at)


def test_the_outcome_is_listed_above_the_start_of_the_same_instant(
    ada: Belongings, nightly: Schedule
) -> None:
    calls = [SchedulePing(schedule=nightly, backup_id=uuid4(), kind=kind) for kind in ("start", "success")]
    SchedulePing.objects.bulk_create(calls)
    SchedulePing.objects.update(created_at=timezone.now())
    shown = ada.client.get(step_of(nightly)).context["pings"]
    assert [ping.kind for ping in shown] == ["success", "start"]


def test_a_backup_tells_its_schedule_and_slot(ada: Belongings, nightly: Schedule) -> None:
    backup = run_of(nightly, ada, slot="2026-01-02T01:30:00Z", late=True)
    text = page(ada, f"/admin/jobs/backupjob/{backup.pk}/change/")
    assert step_of(nightly) in text
    assert "2026-01-02 02:30 CET" in text
    assert "late" in text
    by_hand = run_of(nightly, ada)
    assert "by “Run now”" in page(ada, f"/admin/jobs/backupjob/{by_hand.pk}/change/")
    assert "<dt>Schedule</dt>" not in page(ada, f"/admin/jobs/backupjob/{ada.backup.pk}/change/")


def test_all_runs_of_a_schedule_are_listed(ada: Belongings, nightly: Schedule) -> None:
    backup = run_of(nightly, ada)
    rows = ada.client.get(f"/admin/jobs/backupjob/?schedule={nightly.pk}").context["cl"].result_list
    assert [row.pk for row in rows] == [backup.pk]
    assert "By schedule" not in page(ada, "/admin/jobs/backupjob/")
    for nonsense in (str(uuid4()), "x"):
        answer = ada.client.get("/admin/jobs/backupjob/", {"schedule": nonsense})
        assert list(answer.context["cl"].result_list) == [], nonsense


def test_a_database_shows_its_schedules_and_offers_one(ada: Belongings, nightly: Schedule) -> None:
    other = Database.objects.create(user=ada.user, name="other", sealed_url=ada.database.sealed_url)
    text = page(ada, f"/admin/jobs/database/{ada.database.pk}/change/")
    assert step_of(nightly) in text
    assert f"{ADD}?database={ada.database.pk}" in text
    assert "backed up by hand only" in page(ada, f"/admin/jobs/database/{other.pk}/change/")
    form = ada.client.get(f"{ADD}?database={other.pk}").context["parts"].name
    assert form["database"].value() == str(other.pk)


def test_home_shows_what_is_wrong_and_what_runs_next(ada: Belongings) -> None:
    assert "None yet: databases are backed up by hand only." in page(ada, "/admin/")
    for hour in range(8):
        planned(ada, f"at {hour}", cron_expression=f"0 {hour} * * *")
    broken = planned(ada, "stuck", enabled=False)
    Schedule.objects.filter(pk=broken.pk).update(broken="by hand")
    lines = ada.client.get("/admin/").context["schedule_lines"]
    assert lines[0].schedule == broken
    assert len(lines) == 6
    assert [line.schedule.next_run_at for line in lines[1:]] == sorted(
        line.schedule.next_run_at for line in lines[1:]
    )
    assert "broken" in page(ada, "/admin/")


def test_home_names_the_databases_that_no_schedule_backs_up(
    ada: Belongings, eve: Belongings, nightly: Schedule
) -> None:
    Database.objects.create(user=ada.user, name="other", sealed_url=ada.database.sealed_url)
    assert [one.name for one in ada.client.get("/admin/").context["by_hand"]] == ["other"]
    services.set_enabled(nightly, False, by=ada.user)
    names = [one.name for one in ada.client.get("/admin/").context["by_hand"]]
    assert names == ["other", ada.database.name]


def test_a_storage_that_a_schedule_names_is_not_deleted(ada: Belongings) -> None:
    storage = storage_of(ada, "named")
    planned(ada, storages=[Target(storage)])
    url = f"/admin/jobs/storage/{storage.pk}/delete/"
    assert "1 schedules send their backups to it" in page(ada, url)
    ada.client.post(url, {"word": "named"})
    storage.refresh_from_db()


def test_deleting_tells_what_watching_loses(ada: Belongings, nightly: Schedule) -> None:
    Database.objects.update(watch=True, watch_schedule_id=nightly.pk)
    assert "New databases that are found at shop-ada get no copy" in page(ada, step_of(nightly, "delete"))


def test_without_a_database_the_form_says_what_comes_first(ada: Belongings) -> None:
    QueuedJob.objects.all().delete()
    Database.objects.all().delete()
    assert "No database is registered yet." in page(ada, ADD)


def test_every_page_carries_the_policy_and_no_inline_code(
    ada: Belongings, nightly: Schedule, root: Client
) -> None:
    steps = ("change", "edit", "delete", "history")
    for url in (
        LIST,
        ADD,
        f"{LIST}reading/?preset=hourly&minute=1",
        *(step_of(nightly, step) for step in steps),
    ):
        response = root.get(url)
        assert response.status_code == 200, url
        assert response.headers["Content-Security-Policy"] == POLICY, url
        assert not INLINE.search(response.content.decode()), url


@pytest.mark.parametrize("url", [LIST, ADD])
def test_schedules_are_in_the_navigation(ada: Belongings, url: str) -> None:
    assert re.search(
        r'<a href="/admin/schedules/schedule/" aria-current="page">Schedules</a>', page(ada, url)
    )
