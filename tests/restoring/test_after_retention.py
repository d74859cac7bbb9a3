"""What retention leaves can be restored."""

from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.models import BackupJob
from schedules import prune
from schedules.models import Schedule
from tests import servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Restores, completed, number

pytestmark = pytest.mark.django_db(transaction=True)


def test_after_ten_failed_runs_the_newest_good_one_comes_back(restores: Restores, shop: Source) -> None:
    older, newest = (restores.backups.take(shop.url, {}, name=name) for name in ("older", "newest"))
    assert newest.database is not None
    user, server = restores.backups.user, servers.get(17)
    schedule = Schedule.objects.create(
        user=user, database=newest.database, name="n", cron_expression="0 2 * * *", keep_last=1, keep_failed=3
    )
    BackupJob.objects.filter(pk__in=[older.pk, newest.pk]).update(schedule_id=schedule.id)
    for _ in range(10):
        BackupJob.objects.create(
            user=user, database_name="shop", schedule_id=schedule.id, status="failed",
            started_at=timezone.now(), completed_at=timezone.now(),
        )  # fmt: skip

    prune.prune_due()

    left = BackupJob.objects.filter(schedule_id=schedule.id)
    assert list(left.filter(status="completed")) == [newest]
    assert left.filter(status="failed").count() == 3
    name = restores.name()
    completed(restores.take(restores.at(server, name), newest, "new", name))
    tables = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    assert number(server, name, tables) > 0
