"""Two at once: whoever comes second sees what the first has done, and the last good copy is never taken."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest
from django.db import connection, transaction

from jobs import deleting, trash
from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.models.storage import CopyState
from jobs.restoring import enqueue_restore
from jobs.restoring.orders import RestoreOrder
from jobs.services import ServiceError
from schedules import prune
from schedules.models import Schedule
from tests.schedules.conftest import MakeSchedule, ago
from tests.waiting import until

from .conftest import Backup, objects, remaining

pytestmark = pytest.mark.django_db(transaction=True)

Aside = Callable[[Callable[[], object]], Future[object]]


def in_a_session_of_its_own(work: Callable[[], object]) -> object:
    try:
        return work()
    finally:
        connection.close()


@pytest.fixture
def aside() -> Iterator[Aside]:
    """Run something in another thread, on a connection of its own."""
    with ThreadPoolExecutor(6) as pool:
        yield lambda work: pool.submit(in_a_session_of_its_own, work)


@contextmanager
def held_open(aside: Aside, work: Callable[[], object]) -> Iterator[Future[object]]:
    """What `work` has done is committed when this block ends."""
    done, commit = threading.Event(), threading.Event()

    def run() -> object:
        with transaction.atomic():
            result = work()
            done.set()
            assert commit.wait(30)
        return result

    running = aside(run)
    try:
        assert done.wait(30)
        yield running
    finally:
        commit.set()


def waits(running: Future[object]) -> bool:
    """For a lock of somebody else's; fails when it has ended."""
    assert not running.done(), running.result()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


Three = tuple[Schedule, list[BackupJob]]


@pytest.fixture
def three(make_schedule: MakeSchedule, backup: Backup) -> Three:
    """A schedule that keeps one of its three backups, the newest first."""
    schedule = make_schedule(keep_last=1)
    return schedule, [backup(schedule, ago(days=days)) for days in (1, 2, 3)]


def test_a_pin_that_came_first_keeps_it(three: Three, aside: Aside) -> None:
    schedule, made = three
    with held_open(aside, lambda: trash.pin(made[1], True, by=made[1].user)):
        pruning = aside(lambda: prune.prune(schedule))
        until(lambda: waits(pruning), "prune waits for the pin")
    assert pruning.result(30) == 1
    assert remaining() == {made[0].id, made[1].id}


def test_a_pin_that_comes_second_is_told_no(three: Three, aside: Aside, storage: Storage) -> None:
    schedule, made = three
    mark = lambda: deleting.mark_surplus(schedule.id, storage.id, [made[1].id])  # noqa: E731
    with held_open(aside, mark):
        pinning = aside(lambda: trash.pin(made[1], True, by=made[1].user))
        until(lambda: waits(pinning), "the pin waits for prune")
    with pytest.raises(ServiceError, match="is being deleted already"):
        pinning.result(30)
    assert not BackupJob.objects.get(id=made[1].id).pinned


def order(backup: BackupJob, database: Database) -> object:
    wanted = RestoreOrder(database, "new", "shop_again", {}, backup)
    return enqueue_restore(wanted, by=database.user)


def test_a_restore_that_is_being_queued_keeps_its_backup(
    three: Three, aside: Aside, database: Database
) -> None:
    schedule, made = three
    with held_open(aside, lambda: order(made[1], database)):
        pruning = aside(lambda: prune.prune(schedule))
        until(lambda: waits(pruning), "prune waits for the restore")
    assert pruning.result(30) == 1
    assert remaining() == {made[0].id, made[1].id}


def test_a_restore_of_what_is_being_deleted_is_refused(
    three: Three, aside: Aside, database: Database, storage: Storage
) -> None:
    schedule, made = three
    mark = lambda: deleting.mark_surplus(schedule.id, storage.id, [made[1].id])  # noqa: E731
    with held_open(aside, mark):
        ordering = aside(lambda: order(made[1], database))
        until(lambda: waits(ordering), "the restore waits for prune")
    with pytest.raises(ServiceError, match="is being deleted: choose another one"):
        ordering.result(30)


def test_a_restore_from_the_trash_keeps_it_from_being_emptied(
    three: Three, aside: Aside, database: Database
) -> None:
    _, made = three
    BackupJob.objects.filter(id=made[1].id).update(trashed_at=ago(days=9))
    with held_open(aside, lambda: order(made[1], database)):
        assert aside(trash.empty_due).result(30) == 0, "it does not wait for one row"
    assert trash.empty_due() == 0
    assert made[1].id in remaining()


def test_what_is_taken_back_while_the_trash_is_emptied_stays(three: Three, aside: Aside) -> None:
    _, made = three
    BackupJob.objects.filter(id=made[1].id).update(trashed_at=ago(days=9))
    with held_open(aside, lambda: trash.take_back(made[1], by=made[1].user)):
        assert aside(trash.empty_due).result(30) == 0
    assert trash.empty_due() == 0
    assert BackupJob.objects.get(id=made[1].id).pinned


def test_the_newest_goes_into_the_trash_while_the_others_are_pruned(three: Three, aside: Aside) -> None:
    """Prune has decided already, and finds what it counted on gone."""
    schedule, made = three
    with held_open(aside, lambda: trash.put(made[0], by=made[0].user)):
        pruning = aside(lambda: prune.prune(schedule))
        until(lambda: waits(pruning), "prune waits for the newest")
    pruning.result(30)
    prune.prune(schedule)
    assert remaining() == {made[0].id, made[1].id}
    assert BackupCopy.objects.filter(backup=made[1], state=CopyState.GOOD).exists()


def test_the_newest_is_lost_while_the_others_are_pruned(three: Three, aside: Aside) -> None:
    schedule, made = three

    def lose() -> None:
        BackupCopy.objects.filter(backup=made[0]).update(state=CopyState.FAILED)

    with held_open(aside, lose):
        pruning = aside(lambda: prune.prune(schedule))
        until(lambda: waits(pruning), "prune waits for the newest copy")
    pruning.result(30)
    assert BackupCopy.objects.filter(backup=made[1], state=CopyState.GOOD).exists()


def test_a_policy_that_is_being_loosened_is_waited_for(three: Three, aside: Aside) -> None:
    schedule, _ = three

    def loosen() -> None:
        Schedule.objects.filter(id=schedule.id).update(keep_last=9)

    with held_open(aside, loosen):
        pruning = aside(lambda: prune.prune(schedule))
        until(lambda: waits(pruning), "prune waits for the schedule")
    assert pruning.result(30) == 0
    assert len(remaining()) == 3


def test_a_policy_is_loosened_once_what_was_decided_is_marked(
    three: Three, aside: Aside, storage: Storage
) -> None:
    schedule, _ = three
    with held_open(aside, lambda: prune._mark(schedule.id, storage.id)):
        loosening = aside(lambda: Schedule.objects.filter(id=schedule.id).update(keep_last=9))
        until(lambda: waits(loosening), "the policy waits for prune")
    assert loosening.result(30) == 1


@transaction.atomic
def test_a_decision_that_is_out_of_date_takes_not_the_newest(three: Three, storage: Storage) -> None:
    schedule, made = three
    assert deleting.mark_surplus(schedule.id, storage.id, [each.id for each in made]) == []
    assert deleting.mark_surplus(schedule.id, storage.id, [made[0].id, made[1].id]) == []
    (marked,) = deleting.mark_surplus(schedule.id, storage.id, [made[0].id, made[2].id])
    assert BackupCopy.objects.get(id=marked).backup_id == made[2].id


def test_two_prunes_at_once_delete_each_copy_once(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage, aside: Aside
) -> None:
    schedule = make_schedule(keep_last=2)
    made = [backup(schedule, ago(hours=hours)) for hours in range(12)]
    pruning = [aside(lambda: prune.prune(schedule)) for _ in range(3)]
    assert sum(int(str(each.result(30))) for each in pruning) == 10
    assert remaining() == {made[0].id, made[1].id}
    assert objects(storage) == {str(made[0].id), str(made[1].id)}


def disturb(schedule: Schedule, backups: list[BackupJob], seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    for _ in range(8):
        what = chance.choice(["prune", "policy", "retry", "give up"])
        if what == "prune":
            prune.prune(schedule)
        elif what == "policy":
            policy = {"keep_last": chance.randint(1, 3), "keep_bytes": chance.choice([None, 1, 60])}
            Schedule.objects.filter(id=schedule.id).update(**policy)
        elif what == "retry":
            deleting.retry()
        else:
            copies = BackupCopy.objects.filter(backup=chance.choice(backups), state=CopyState.GOOD)
            copies.update(delete_after=ago(days=1))


def test_whatever_happens_at_once_a_good_copy_stays(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage, aside: Aside
) -> None:
    """Prunes, policies that change and copies that are given up, all over each other."""
    schedule = make_schedule(keep_last=1)
    made = [backup(schedule, ago(hours=hours)) for hours in range(8)]
    for each in [aside(partial(disturb, schedule, made, seed)) for seed in range(4)]:
        each.result(60)
    good = BackupCopy.objects.filter(state=CopyState.GOOD).values_list("backup_id", flat=True)
    assert good
    assert {str(each) for each in good} <= objects(storage)
