from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import ActivityEvent, BackupJob, QueuedJob
from schedules.models import Schedule
from tests.admin.conftest import Belongings, browser
from tests.admin.test_databases import HOSTILE
from tests.schedules.admin.conftest import LIST, planned, step_of
from tests.schedules.conftest import fresh


def page(owned: Belongings, query: str = "") -> str:
    return owned.client.get(f"{LIST}{query}").content.decode()


def failed_run(schedule: Schedule) -> BackupJob:
    return BackupJob.objects.create(
        user=schedule.user, database=schedule.database, database_name=schedule.database.name,
        status="failed", error="disk full", schedule_id=schedule.pk, started_at=timezone.now(),
        completed_at=timezone.now(),
    )  # fmt: skip


def test_the_list_says_when_each_runs_in_words(ada: Belongings, nightly: Schedule) -> None:
    text = page(ada)
    assert "At 02:30" in text
    assert 'title="30 2 * * *"' in text
    assert "Europe/Berlin" in text
    assert "no backup yet" in text
    assert 'aria-checked="true"' in text
    assert nightly.next_run_at is not None
    assert nightly.next_run_at.isoformat() in text


def test_health_is_colour_icon_and_word(ada: Belongings, nightly: Schedule) -> None:
    failed_run(nightly)
    assert "last run failed" in page(ada)
    failed_run(nightly)
    assert '<span class="badge badge-failed">' in page(ada)
    assert "failing, 2 times" in page(ada)
    Schedule.objects.update(broken="day of month: 40 is too high")
    assert "broken" in page(ada)
    Schedule.objects.update(broken=None, next_run_at=timezone.now() - timedelta(hours=2))
    assert "overdue" in page(ada)


def test_the_health_of_the_whole_page_is_one_query(ada: Belongings) -> None:
    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as seen:
            ada.client.get(LIST)
        return [query["sql"] for query in seen.captured_queries]

    planned(ada, "first")
    before = queries()
    for number in range(10):
        failed_run(planned(ada, f"more {number}"))
    after = queries()
    assert len(after) == len(before)
    assert len([sql for sql in after if '"backup_copies"' in sql]) == 1


def test_a_click_switches_off_and_on_and_leads_back(ada: Belongings, nightly: Schedule) -> None:
    here = f"http://testserver{LIST}?q=night"
    url = step_of(nightly, "enable")
    response = ada.client.post(url, {"enabled": "no"}, headers={"Referer": here})
    assert (fresh(nightly).enabled, fresh(nightly).next_run_at) == (False, None)
    assert response.headers["Location"] == here
    assert 'aria-checked="false"' in page(ada)
    ada.client.post(url, {"enabled": "no"})
    assert fresh(nightly).enabled is False, "pressed twice it stays off"
    ada.client.post(url, {"enabled": "yes"})
    assert fresh(nightly).next_run_at is not None
    assert ActivityEvent.objects.filter(action="disable").count() == 1


def test_nobody_is_led_to_another_site(ada: Belongings, nightly: Schedule) -> None:
    url = step_of(nightly, "enable")
    response = ada.client.post(url, {"enabled": "no"}, headers={"Referer": "https://evil.test/"})
    assert response.headers["Location"] == step_of(nightly)


def test_one_that_cannot_fire_is_not_switched_on(ada: Belongings, nightly: Schedule) -> None:
    Schedule.objects.update(cron_expression="0 0 31 2 *", enabled=False)
    text = ada.client.post(step_of(nightly, "enable"), {"enabled": "yes"}, follow=True).content.decode()
    assert "nightly: It cannot run" in text
    assert fresh(nightly).enabled is False


def test_run_now_queues_a_backup_of_the_schedule(ada: Belongings, nightly: Schedule) -> None:
    ada.client.post(step_of(nightly, "run"))
    job = QueuedJob.objects.get(schedule_id=nightly.pk)
    assert job.slot is None
    assert str(job.pk) in ada.client.get(step_of(nightly)).content.decode()


def test_a_clone_is_the_same_under_another_name_and_off_and_calls_no_monitor(
    ada: Belongings, nightly: Schedule
) -> None:
    Schedule.objects.update(ping_success_url="https://monitor.test/ok")
    for name in ("nightly copy", "nightly copy 2"):
        response = ada.client.post(step_of(nightly, "clone"))
        made = Schedule.objects.get(name=name)
        assert response.headers["Location"] == step_of(made, "edit")
        assert (made.enabled, made.cron_expression, made.timezone) == (False, "30 2 * * *", "Europe/Berlin")
        assert made.ping_success_url == ""


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?q=night", ["nightly"]),
        ("?q=shop-ada", ["nightly", "hourly"]),
        ("?database=shop-ada", ["nightly", "hourly"]),
        ("?database=other", []),
        ("?enabled__exact=0", ["hourly"]),
        ("?health=failing", ["nightly"]),
        ("?health=broken", ["hourly"]),
        ("?health=lagging", []),
        ("?health=overdue", ["nightly"]),
        ("?health=what", ["nightly", "hourly"]),
        ("?_facets=True", ["nightly", "hourly"]),
    ],
)
def test_the_list_is_searched_and_filtered(
    ada: Belongings, nightly: Schedule, query: str, found: list[str]
) -> None:
    hourly = planned(ada, "hourly", cron_expression="0 * * * *", enabled=False)
    Schedule.objects.filter(pk=hourly.pk).update(broken="by hand")
    Schedule.objects.filter(pk=nightly.pk).update(next_run_at=timezone.now() - timedelta(hours=1))
    failed_run(nightly)
    rows = ada.client.get(f"{LIST}{query}").context["cl"].result_list
    assert sorted(row.name for row in rows) == sorted(found)


def test_several_are_switched_and_run_at_once(ada: Belongings, nightly: Schedule) -> None:
    chosen = [nightly.pk, planned(ada, "second").pk]
    ada.client.post(LIST, {"action": "disable", "_selected_action": chosen})
    assert set(Schedule.objects.values_list("enabled", flat=True)) == {False}
    ada.client.post(LIST, {"action": "run_now", "_selected_action": chosen})
    assert QueuedJob.objects.filter(schedule_id__in=chosen).count() == 2
    Schedule.objects.filter(name="second").update(timezone="Nowhere/Gone")
    text = ada.client.post(LIST, {"action": "enable", "_selected_action": chosen}, follow=True)
    assert "second: It cannot run" in text.content.decode()
    assert "1 schedule enabled." in text.content.decode()


def test_names_are_escaped(ada: Belongings) -> None:
    made = planned(ada, HOSTILE)
    for url in (LIST, step_of(made), step_of(made, "edit"), step_of(made, "delete"), "/admin/"):
        text = ada.client.get(url).content.decode()
        assert HOSTILE not in text, url
        assert "&lt;script&gt;" in text, url


def test_deleting_says_that_the_backups_stay(ada: Belongings, nightly: Schedule) -> None:
    BackupJob.objects.filter(pk=ada.backup.pk).update(schedule_id=nightly.pk)
    url = step_of(nightly, "delete")
    text = ada.client.get(url).content.decode()
    assert "Its 1 backup stays" in text
    assert "pruned no longer" in text
    assert ada.client.post(url, {"word": "x"}).status_code == 400
    ada.client.post(url, {"word": "nightly"})
    assert not Schedule.objects.exists()
    assert BackupJob.objects.filter(pk=ada.backup.pk).exists()
    assert (
        "deleted since"
        in browser(ada.user).get(f"/admin/jobs/backupjob/{ada.backup.pk}/change/").content.decode()
    )
