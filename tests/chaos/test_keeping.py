"""Schedules, retention, trash, sweeps and copies at a gallop, in workers that are killed and frozen, while
people do what they like: each slot has one job, what has to stay is there, and nothing else is.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now

from jobs import deleting
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.secrets import seal
from jobs.storage.base import ObjectMissing
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import store_for
from jobs.sweeping.strays import artifact_key
from schedules.models import Schedule
from tests import s3server, servers
from tests.chaos.faults import TIMINGS, House
from tests.chaos.people import FORGED, People
from tests.chaos.test_soak import stored
from tests.hasty import hurry
from tests.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

SECONDS = float(os.environ.get("KEEPING_SECONDS", "300"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
ACTS, TROUBLES = 40, 6  # of one round, about


class HastyHouse(House):
    timings = TIMINGS | {
        "DJANGO_SETTINGS_MODULE": "tests.settings_hasty",
        "TICK_SECONDS": 0.3,
        "STALL_LIMIT": 50,
        "STORAGE_RETRY_SECONDS": 10,
    }

    def __init__(self, logs: Path, dice: random.Random, source: str) -> None:
        super().__init__(logs, dice, source)
        self._faults = [
            self.kill_process, self.kill_process, self.kill_worker, self.kill_supervisor,
            self.terminate_worker, self.freeze, self.thaw, self.thaw, self.lose_commit, self.cut_database,
            self.busy_store, self.lose_store_answer, self.cut_store, self.stall_store, self.crash_store,
        ]  # fmt: skip


@pytest.fixture
def source() -> Iterator[str]:
    server, name = servers.get(17), f"kept_{uuid.uuid4().hex[:8]}"
    url = server.create_database(name)
    with psycopg.connect(url) as session:
        session.execute("CREATE TABLE goods AS SELECT n, md5(n::text) FROM generate_series(1, 2000) AS n")
    yield url
    server.drop_database(name)


def storages(user: User, endpoint: str, folder: Path) -> list[Storage]:
    server = s3server.shared()
    keys = {"access_key_id": server.access_key, "sealed_secret": seal(server.secret_key)}
    folder.mkdir()
    rows = [
        Storage(name="one", endpoint=endpoint, bucket=server.new_bucket(), **keys),
        Storage(name="two", endpoint=endpoint, bucket=server.new_bucket(), prefix="off/site", **keys),
        Storage(name="nas", kind="folder", folder=str(folder)),
    ]
    for row in rows:
        row.user = user
        row.save()
    return rows


def test_keeping(source: str, make_database: Callable[..., Database], tmp_path: Path) -> None:
    hurry()
    dice = random.Random(SEED)  # noqa: S311 - to be repeated, not to be secret
    house, database = HastyHouse(tmp_path, dice, source), make_database(source)
    people = People(dice, database, storages(database.user, house.store.url, tmp_path / "nas"))
    deadline, rounds = time.monotonic() + SECONDS, 0
    print(f"SOAK_SEED={SEED}")
    try:
        while time.monotonic() < deadline:
            people.done.clear()
            house.done.clear()
            _round(house, people)
            check(people)
            rounds += 1
            print(f"round {rounds}: {' '.join(house.done)}; {len(people.slots)} slots so far", flush=True)
    except BaseException:
        did = f"{' '.join(people.done)}; {' '.join(house.done)}"
        print(f"in round {rounds + 1}: {did}; SOAK_SEED={SEED}; logs in {tmp_path}", flush=True)
        raise
    finally:
        house.close()
    logs = "".join(path.read_text(errors="replace") for path in tmp_path.glob("worker-*.log"))
    assert "defect" not in logs


def _round(house: HastyHouse, people: People) -> None:
    house.fill()
    for _ in range(ACTS):
        people.anything()
        if house.dice.random() < TROUBLES / ACTS:
            house.anything()
            house.fill()
        house.pause(0.3)
    house.heal()
    house.fill()


def check(people: People) -> None:
    until(lambda: not _is_due().exists(), "what is due is ticked", seconds=60)
    unfinished = QueuedJob.objects.filter(queue="backup", status__in=["pending", "active"])
    until(lambda: not unfinished.exists(), "every backup has ended", seconds=120)
    good = BackupCopy.objects.filter(state="good")
    wanted = people.cancel_restores()
    assert set(wanted) <= {str(id_) for id_ in good.values_list("backup_id", flat=True)}, "restores want them"
    people.prune_again()
    people.want_sweep()
    until(_is_settled, "copies are made and deleted", seconds=120)
    _check_slots(people)
    _check_backups(people, good)
    for storage in people.storages:
        _check_objects(people, storage, good.filter(storage=storage))


def _is_due() -> QuerySet[Schedule]:
    return Schedule.objects.filter(enabled=True, next_run_at__lte=Now())


def _is_settled() -> bool:
    away = BackupCopy.objects.filter(state="deleting", next_attempt_at__gt=Now() + timedelta(seconds=8))
    away.filter(claim_id=None).update(next_attempt_at=Now())
    left = (
        BackupCopy.objects.exclude(state="good"),
        Storage.objects.filter(swept_at=None),
        Schedule.objects.filter(pruned_at=None),
    )
    return not any(rows.exists() for rows in left)


def _check_slots(people: People) -> None:
    jobs = Counter(QueuedJob.objects.filter(slot__isnull=False).values_list("schedule_id", "slot"))
    assert set(jobs.values()) <= {1}
    kept = set(Schedule.objects.values_list("id", flat=True))
    assert not {slot for slot in people.slots if slot[0] in kept} - jobs.keys(), "slots without a job"


def _check_backups(people: People, good: QuerySet[BackupCopy]) -> None:
    there = set(good.values_list("backup_id", flat=True))
    completed = {job.id: job for job in QueuedJob.objects.filter(queue="backup", status="completed")}
    assert people.pinned & completed.keys() <= there, "what is pinned stays"
    assert (people.manual & completed.keys()) - people.deleted <= there, "what no schedule made stays"
    assert set(BackupJob.objects.filter(status="completed").values_list("id", flat=True)) <= there
    for schedule in Schedule.objects.all():
        made = [job for job in completed.values() if job.schedule_id == schedule.id]
        if made and not people.deleted & {job.id for job in made}:
            newest = max(made, key=lambda job: job.slot or job.created_at)
            assert newest.id in there, f"the newest of {schedule} stays"
        _check_copies(schedule, there)


def _check_copies(schedule: Schedule, there: set[uuid.UUID]) -> None:
    rows = BackupJob.objects.filter(schedule_id=schedule.id, id__in=there, trashed_at=None)
    newest = rows.annotate(moment=deleting.moment()).order_by("-moment", "-id").first()
    if newest is not None:
        named = set(schedule.schedulestorage_set.values_list("storage_id", flat=True))
        good = newest.copies.filter(state="good").values_list("storage_id", flat=True)
        # What was edited a moment ago may still have to be planned.
        until(
            lambda: named <= set(good.all()),
            f"the newest of {schedule} is in each of its storages",
            seconds=60,
        )


def _check_objects(people: People, storage: Storage, good: QuerySet[BackupCopy]) -> None:
    store = store_for(storage)

    def differences() -> set[str]:
        """Objects without row, rows without object."""
        expected = {key for copy in good.all() for key in _keys(copy)}
        listed = {info.key for info in store.list("") if f"/{FORGED}/" not in f"/{info.key}"}
        if listed - expected:
            people.age_files()
            people.want_sweep()
        # Called like another storage's, an object that came back with its disk is told and stays.
        elsewhere = set(BackupCopy.objects.exclude(storage=storage).values_list("storage_key", flat=True))
        return {key for key in listed ^ expected if key in expected or artifact_key(key) not in elsewhere}

    until(lambda: not differences(), f"the objects in {storage.name} are those of the rows", seconds=60)
    for copy in good.select_related("backup"):
        try:
            found = stored(storage, BackupJob(storage_key=copy.storage_key))
        except ObjectMissing:
            found = ("", 0)
        if found != (copy.backup.sha256, copy.backup.size):
            assert not good.filter(id=copy.id).exists(), f"{copy.storage_key} is damaged"


def _keys(copy: BackupCopy) -> Iterator[str]:
    yield copy.storage_key
    yield manifest_key(copy.storage_key)
    if copy.has_globals:
        yield globals_key(copy.storage_key)
