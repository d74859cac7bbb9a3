"""Every page, wide and narrow, light and dark: no complaint of the browser, and nothing sticks out."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.databases import register
from jobs.models import BackupCopy, BackupJob, Database, MigrationJob, RestoreJob, Storage, WorkerProcess
from jobs.services import enqueue_backup
from jobs.storage.base import FOREVER
from jobs.stores import default_storage, follow_settings
from jobs.sweeping import Swept
from schedules.models import PingKind, Schedule, SchedulePing, SkippedSlot
from schedules.plans import Plan, Target
from schedules.retention import Policy
from schedules.services import create as create_schedule
from tests.admin.conftest import Belongings, stored_backup
from tests.e2e.conftest import OpenPage, Site
from tests.workers import database_url

NAME = "a_rather_long_name_of_a_database_in_production_" + "x" * 50
ERROR = "pg_dump: error: " + "something_without_any_space_in_it_" * 8
PASSWORD = "a-long-passphrase"


@pytest.fixture
def full_instance(site: Site, tmp_path: Path) -> Belongings:
    """Something in every list, with names and errors of the length that breaks a layout."""
    root = User.objects.create_superuser("root", password=PASSWORD)
    User.objects.create_user("ada", password=PASSWORD, is_staff=True)
    follow_settings()
    url = "postgresql://somebody:secret@a-host-with-a-long-name.internal.example.com:5432/production"
    database = register(root, NAME, url, by=root)
    storage = Storage.objects.create(user=root, name="away", kind="folder", folder=str(tmp_path / "away"))
    backup = stored_backup(database, storage)
    job = enqueue_backup(database, {"exclude_tables": ["public." + "y" * 60]}, by=root)
    result = {"put": None, "get": None, "list": ERROR, "delete": ERROR}
    Storage.objects.filter(pk=storage.pk).update(test_result=result, tested_at=backup.started_at)
    for status in ("running", "failed"):
        BackupJob.objects.create(
            user=root, database=database, database_name=NAME, status=status, error=ERROR, log=ERROR * 20,
            warnings=[ERROR], started_at=backup.started_at, progress={"share": 0.4, "table": NAME},
        )  # fmt: skip
        written: dict[str, Any] = {
            "user": root, "status": status, "error": ERROR, "log": ERROR, "warnings": [ERROR],
            "mode": "replace", "target_name": NAME, "kept_name": NAME,
            "progress": {"share": 0.4, "table": NAME}, "started_at": backup.started_at,
            "completed_at": backup.started_at,
        }  # fmt: skip
        RestoreJob.objects.create(database=database, database_name=NAME, backup=backup, **written)
        MigrationJob.objects.create(source_database_name=NAME, target_database_name=NAME, **written)
    scheduled(root, database, storage, backup)
    discarded(storage, backup)
    watched(database, register(root, "reachable", database_url(), by=root))
    WorkerProcess.objects.create(name="host:1:" + "f" * 60, host="host", pid=1, role="backup", concurrency=5)
    waiting = root.queuedjob_set.get(pk=job)
    return Belongings(root, None, database, storage, backup, waiting)  # type: ignore[arg-type]


def scheduled(root: User, database: Database, storage: Storage, backup: BackupJob) -> None:
    """A schedule with something in each of its lists, and one that is well."""
    rules = Policy(keep_last=3, keep_daily=7, keep_bytes=10**11)
    plan = Plan(
        name=f"nightly {NAME[:80]}", cron_expression="30 2 13 * fri", policy=rules,
        timezone="America/Argentina/ComodRivadavia",
        storages=[Target(storage), Target(default_storage(), Policy(keep_monthly=12))],
        ping_success_url="https://monitor.example.com/" + "p" * 80,
    )  # fmt: skip
    made = create_schedule(database, plan, by=root)
    create_schedule(
        database, replace(plan, name="hourly", cron_expression="0 * * * *", ping_success_url=""), by=root
    )
    BackupJob.objects.update(schedule_id=made.pk, late=True)
    BackupCopy.objects.create(
        backup=backup, storage=default_storage(), is_first=False, state="failed", storage_key="x",
        error=ERROR, next_attempt_at=backup.started_at, attempts=3,
    )  # fmt: skip
    SkippedSlot.objects.create(schedule=made, slot=backup.created_at, reason=ERROR, backup=backup)
    for kind in PingKind.values:
        SchedulePing.objects.create(schedule=made, backup_id=backup.pk, kind=kind, error=ERROR)
    Schedule.objects.filter(pk=made.pk).update(retention_error=ERROR, next_run_at=backup.started_at)


def discarded(storage: Storage, backup: BackupJob) -> None:
    """Something in the trash, a copy that is given up and locked, and all that a sweep can tell."""
    BackupJob.objects.filter(status="failed").update(trashed_at=backup.created_at)
    BackupCopy.objects.filter(backup=backup, storage=storage).update(
        delete_after=backup.created_at + timedelta(days=7), locked_until=FOREVER
    )
    swept = Swept(error=ERROR)
    for found in (swept.known, swept.foreign, swept.strays, swept.deleted, swept.lost, swept.back):
        found.add("shop/" + "k" * 90, 10**9, ERROR, backup=str(backup.pk))
    Storage.objects.filter(pk=storage.pk).update(swept=swept.as_json(), swept_at=backup.created_at)


def watched(database: Database, reachable: Database) -> None:
    """What looks at a server have found, and something of everything else that its page tells."""
    seen = {
        "found": 4,
        "new": [NAME],
        "vanished": [[NAME, "z" * 63]],
        "left": ["z" * 63],
        "problems": [ERROR],
    }
    for row in (database, reachable):
        Database.objects.filter(pk=row.pk).update(watch=True, watched=seen, watched_at=row.created_at)


def urls_of(full: Belongings) -> dict[str, str]:
    jobs, failed = "/admin/jobs", BackupJob.objects.get(status="failed")
    running = BackupJob.objects.get(status="running")
    database, backup = f"{jobs}/database/{full.database.pk}", f"{jobs}/backupjob/{full.backup.pk}"
    schedule = f"/admin/schedules/schedule/{Schedule.objects.get(name__startswith='nightly').pk}"
    restore = f"{jobs}/restorejob/{RestoreJob.objects.get(status='failed').pk}"
    migration = f"{jobs}/migrationjob/{MigrationJob.objects.get(status='running').pk}"
    return {
        "home": "/admin/",
        "databases": f"{jobs}/database/",
        "database": f"{database}/change/",
        "discover": f"{jobs}/database/{Database.objects.get(name='reachable').pk}/discover/",
        "database-add": f"{jobs}/database/add/",
        "database-delete": f"{database}/delete/",
        "backup-now": f"{database}/backup/",
        "backups": f"{jobs}/backupjob/",
        "backup": f"{backup}/change/",
        "backup-failed": f"{jobs}/backupjob/{failed.pk}/change/",
        "backup-running": f"{jobs}/backupjob/{running.pk}/change/",
        "backup-delete": f"{backup}/delete/",
        "backup-delete-for-good": f"{backup}/delete-for-good/",
        "trash": f"{jobs}/backupjob/?trash=yes",
        "database-wipe": f"{database}/wipe/",
        "backup-restore": f"{backup}/restore/",
        "backup-contents": f"{backup}/contents/",
        "restores": f"{jobs}/restorejob/",
        "restore": f"{restore}/change/",
        "restore-undo": f"{restore}/undo/",
        "restore-drop": f"{restore}/drop/",
        "migrations": f"{jobs}/migrationjob/",
        "migration": f"{migration}/change/",
        "migrate": f"{jobs}/migrationjob/add/?source={full.database.pk}",
        "schedules": "/admin/schedules/schedule/",
        "schedule": f"{schedule}/change/",
        "schedule-edit": f"{schedule}/edit/",
        "schedule-delete": f"{schedule}/delete/",
        "schedule-add": f"/admin/schedules/schedule/add/?database={full.database.pk}",
        "storages": f"{jobs}/storage/",
        "storage": f"{jobs}/storage/{full.storage.pk}/change/",
        "storage-add": f"{jobs}/storage/add/",
        "queue": f"{jobs}/queuedjob/",
        "job": f"{jobs}/queuedjob/{full.waiting.pk}/change/",
        "workers": f"{jobs}/workerprocess/",
        "activity": f"{jobs}/activityevent/",
        "users": "/admin/auth/user/",
        "user": f"/admin/auth/user/{full.user.pk}/change/",
        "user-add": "/admin/auth/user/add/",
        "user-password": f"/admin/auth/user/{full.user.pk}/password/",
        "user-delete": f"/admin/auth/user/{full.user.pk}/delete/",
        "password": "/admin/password_change/",
        "jobs": "/admin/jobs/",
        "history": f"{database}/history/",
    }


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page(open_page: OpenPage, full_instance: Belongings, width: int, scheme: str) -> None:
    page = open_page(width, scheme)
    page.goto("/admin/login/")
    page.get_by_label("Username:").fill("root")
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/")
    shots = os.environ.get("SCREENSHOTS")
    too_wide = {}
    for name, url in urls_of(full_instance).items():
        page.goto(url)
        assert page.url.endswith(url), f"{name}: led to {page.url}"
        sticks_out = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if sticks_out > 0:
            too_wide[name] = sticks_out
        if shots:
            page.screenshot(path=f"{shots}/{name}-{scheme}-{width}.png", full_page=True)
    assert too_wide == {}
