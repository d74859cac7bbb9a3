"""Real backups of a schedule, and what its monitor hears of them."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import BackupJob
from pgbr.ports import free_port
from schedules import pings, services
from schedules.models import SchedulePing
from tests.processors.conftest import Backups, MakeSource, backups, make_source, tool_folders
from tests.schedules.monitor import Monitor

__all__ = ["backups", "make_source", "tool_folders"]

pytestmark = pytest.mark.django_db(transaction=True)


def run(backups: Backups, url: str, **urls: Any) -> BackupJob:
    """The finished backup of a schedule that pings these."""
    database = backups.register(url)
    plan = services.Plan(name="nightly", cron_expression="@daily", **urls)
    schedule = services.create(database, plan, by=backups.user)
    return backups.finish(services.run_now(schedule, by=backups.user))


def test_backup_that_succeeds_is_told_at_start_and_end(backups: Backups, make_source: MakeSource) -> None:
    with Monitor() as monitor:
        urls = {f"ping_{kind}_url": f"{monitor.url}/{kind}" for kind in ("start", "success", "failure")}
        backup = run(backups, make_source(17).url, **urls)
        pings.collect()
        pings.send_due()

    assert (backup.status, monitor.paths) == ("completed", ["/start", "/success"])


def test_backup_that_fails_is_told_with_its_error(backups: Backups) -> None:
    check = "/ping/0123abcd-0123-0123-0123-0123456789ab"
    with Monitor() as monitor:
        url = f"postgresql://app:hunter2@127.0.0.1:{free_port()}/gone"
        backup = run(backups, url, ping_success_url=f"{monitor.url}{check}")
        pings.collect()
        pings.send_due()

    assert (backup.status, monitor.paths) == ("failed", [f"{check}/start", f"{check}/fail"])
    assert "refused" in monitor.calls[1].body
    assert "hunter2" not in monitor.calls[1].body


def test_monitor_that_is_down_fails_no_backup(backups: Backups, make_source: MakeSource) -> None:
    backup = run(backups, make_source(17).url, ping_success_url=f"http://127.0.0.1:{free_port()}/x")
    pings.collect()

    assert pings.send_due() == 0
    backup.refresh_from_db()
    assert (backup.status, backup.error) == ("completed", None)
    assert "refused" in str(SchedulePing.objects.get().error)
