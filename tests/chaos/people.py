"""What users and operators do to schedules, backups and storages while everything else goes on."""

from __future__ import annotations

import os
import random
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from jobs import trash
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.restoring.orders import RestoreOrder, enqueue_restore
from jobs.services import ServiceError, cancel_job, enqueue_backup
from jobs.storage.base import StoreError
from jobs.storage.keys import manifest_key, object_key
from jobs.stores import store_for
from schedules import services
from schedules.models import Schedule
from schedules.retention import Policy
from schedules.services import Plan, Target
from tests.schedules.conftest import RARELY

FORGED = "forged"
FLAGS = {"compress": "none"}


class People:
    """`slots`: what was made due. Of backups: those that nothing may delete, and those deleted by hand."""

    def __init__(self, dice: random.Random, database: Database, storages: list[Storage]) -> None:
        self.dice = dice
        self.user: User = database.user
        self.database = database
        self.storages = storages
        self.done: list[str] = []
        self.slots: set[tuple[uuid.UUID, datetime]] = set()
        self.manual: set[uuid.UUID] = set()
        self.pinned: set[uuid.UUID] = set()
        self.deleted: set[uuid.UUID] = set()
        self._acts: dict[Callable[[], object], float] = {
            self.make_due: 12, self.edit: 5, self.switch: 1, self.run_now: 1, self.prune_again: 2,
            self.new_schedule: 0.3, self.delete_schedule: 0.3, self.back_up: 2, self.restore: 2,
            self.put: 3, self.take_back: 3, self.for_good: 1, self.pin: 2, self.unpin: 2, self.age_trash: 3,
            self.want_sweep: 3, self.age_files: 2, self.unmount: 1, self.forge: 1,
        }  # fmt: skip
        for _ in range(3):
            self.new_schedule()

    def anything(self) -> None:
        """What is refused is refused."""
        (act,) = self.dice.choices(list(self._acts), list(self._acts.values()))
        self.done.append(getattr(act, "__name__", ""))
        with suppress(ServiceError):
            act()

    # Schedules -----------------------------------------------------------------------------------

    def new_schedule(self) -> None:
        name = f"schedule {uuid.uuid4().hex[:8]}"
        plan = Plan(name, RARELY, flags=FLAGS, storages=self._targets(), policy=self._policy())
        services.create(self.database, plan, by=self.user)

    def delete_schedule(self) -> None:
        if Schedule.objects.count() > 2:
            services.delete(self._schedule(), by=self.user)

    def make_due(self) -> None:
        """Now or long ago, unless it is due already."""
        days = self.dice.choice([0, 0, 0, 0.1, 1, 20])
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE backup_schedules SET next_run_at = now() - make_interval(secs => 86400 * %s)"
                " WHERE id = %s AND enabled AND next_run_at > now() RETURNING id, next_run_at",
                [days, self._schedule().id],
            )
            self.slots.update(cursor.fetchall())

    def edit(self) -> None:
        row = self._schedule()
        plan = replace(services.plan_of(row), policy=self._policy(), storages=self._targets())
        services.update(row, replace(plan, keep_failed=self.dice.choice([None, 0, 3])), by=self.user)

    def switch(self) -> None:
        """What is due and not ticked yet would not come any more, and is meant not to."""
        row = self._schedule()
        if not Schedule.objects.filter(id=row.id, next_run_at__lte=Now()).exists():
            services.set_enabled(row, False, by=self.user)
            services.set_enabled(row, True, by=self.user)

    def run_now(self) -> None:
        services.run_now(self._schedule(), by=self.user)

    def prune_again(self) -> None:
        Schedule.objects.update(pruned_at=None)

    def _schedule(self) -> Schedule:
        return self.dice.choice(list(Schedule.objects.order_by("created_at")))

    def _policy(self) -> Policy:
        rules = {
            "keep_last": self.dice.choice([1, 2, 5]), "keep_daily": self.dice.choice([1, 3]), "keep_days": 1,
            "keep_hourly": 2, "keep_bytes": self.dice.choice([1, 200_000, 10**7]),
        }  # fmt: skip
        chosen = self.dice.sample(list(rules), self.dice.choice([0, 1, 1, 2]))
        return Policy(**{name: rules[name] for name in chosen})

    def _targets(self) -> tuple[Target, ...]:
        chosen = self.dice.sample(self.storages, self.dice.choice([1, 2, 2, 3]))
        return tuple(
            Target(each, self._policy() if self.dice.random() < 0.4 else Policy()) for each in chosen
        )

    # Backups -------------------------------------------------------------------------------------

    def back_up(self) -> None:
        storage = self.dice.choice(self.storages)
        self.manual.add(enqueue_backup(self.database, FLAGS, by=self.user, storage=storage))

    def put(self) -> None:
        row = self._backup(trashed_at=None, pinned=False)
        self.deleted.add(row.id)
        trash.put(row, by=self.user)

    def for_good(self) -> None:
        row = self._backup(pinned=False)
        self.deleted.add(row.id)
        trash.for_good(row, by=self.user)

    def take_back(self) -> None:
        row = self._found(BackupJob.objects.filter(trash.in_trash()))
        if trash.take_back(row, by=self.user):
            self.pinned.add(row.id)
        self.deleted.discard(row.id)

    def pin(self) -> None:
        row = self._backup(pinned=False, trashed_at=None)
        trash.pin(row, True, by=self.user)
        self.pinned.add(row.id)

    def unpin(self) -> None:
        row = self._backup(pinned=True)
        self.pinned.discard(row.id)
        trash.pin(row, False, by=self.user)

    def restore(self) -> None:
        """It waits, as no worker looks at that queue: so long the backup stays."""
        name = f"kept_{uuid.uuid4().hex[:8]}"
        order = RestoreOrder(self.database, "new", name, backup=self._backup(trashed_at=None))
        enqueue_restore(order, by=self.user)

    def cancel_restores(self) -> list[str]:
        """The ids of the backups that they wanted."""
        waiting = list(QueuedJob.objects.filter(queue="restore", status="pending"))
        for job in waiting:
            cancel_job(job.id, by=self.user)
        return [str(job.payload["backup_id"]) for job in waiting]

    def age_trash(self) -> None:
        days = timedelta(days=self.dice.choice([4, 8]))
        BackupJob.objects.filter(trashed_at__isnull=False).update(trashed_at=F("trashed_at") - days)
        BackupCopy.objects.filter(delete_after__isnull=False).update(delete_after=F("delete_after") - days)

    def _backup(self, **wanted: Any) -> BackupJob:
        return self._found(BackupJob.objects.filter(status="completed", **wanted))

    def _found(self, rows: Any) -> BackupJob:
        found = list(rows.order_by("created_at", "id"))
        if not found:
            raise ServiceError("There is none.")
        row: BackupJob = self.dice.choice(found)
        return row

    # Storages ------------------------------------------------------------------------------------

    def want_sweep(self) -> None:
        Storage.objects.update(swept_at=None)

    def age_files(self) -> None:
        """A sweep deletes nothing that is young."""
        old = time.time() - 200_000
        for path in self._folder().rglob("*_*"):
            with suppress(FileNotFoundError):
                os.utime(path, (old, old))

    def unmount(self) -> None:
        """The folder for a while; somebody may begin another one in its place."""
        folder = self._folder()
        away = folder.with_name("away")
        folder.rename(away)
        self.want_sweep()
        time.sleep(self.dice.random() * 2)
        if folder.exists():
            shutil.copytree(folder, away, dirs_exist_ok=True)
            shutil.rmtree(folder)
        away.rename(folder)
        self.want_sweep()

    def forge(self) -> None:
        """Another installation's artifact."""
        storage = self.dice.choice(self.storages)
        key = object_key(storage.prefix, FORGED, datetime.now(UTC), uuid.uuid4(), uuid.uuid4(), "dump")
        with suppress(StoreError):
            store = store_for(storage, retry_seconds=1)
            store.put_bytes(key, b"x")
            store.put_bytes(manifest_key(key), b'{"instance": "another"}')

    def _folder(self) -> Path:
        return Path(next(storage.folder for storage in self.storages if storage.folder))
