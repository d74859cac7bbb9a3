"""A database deleted in plain SQL takes its schedules along, and none of its backups."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from jobs.models import BackupCopy, BackupJob, Database
from jobs.stores import default_storage
from schedules.models import PingKind, Schedule, SchedulePing, ScheduleStorage, SkippedSlot
from schedules.tick import tick
from tests.schedules.conftest import ago
from tests.services.conftest import CONTENT, FinishedBackup, _own_folder, finished_backup

__all__ = ["_own_folder", "finished_backup"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_schedules_go_with_their_database_and_backups_stay(
    schedule: Schedule, database: Database, finished_backup: FinishedBackup, user: User
) -> None:
    tick()
    backup = finished_backup(schedule_id=schedule.id, slot=ago(days=1))
    ScheduleStorage.objects.create(schedule=schedule, storage=default_storage())
    SkippedSlot.objects.create(schedule=schedule, slot=ago(hours=1), reason="…", backup=backup)
    SchedulePing.objects.create(schedule=schedule, backup_id=backup.id, kind=PingKind.SUCCESS)

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM databases WHERE id = %s", [database.id])

    for gone in (Schedule, ScheduleStorage, SkippedSlot, SchedulePing):
        assert not gone.objects.exists()
    row = BackupJob.objects.get(id=backup.id)
    assert (row.database_id, row.database_name, row.status) == (None, "shop", "completed")
    assert BackupCopy.objects.get().state == "good"
    client = Client()
    client.force_login(user)
    response = client.get(f"/api/backups/{backup.id}/download")
    assert response.status_code == 200
    assert b"".join(response.streaming_content) == CONTENT  # type: ignore[attr-defined]
    assert tick() == 0
