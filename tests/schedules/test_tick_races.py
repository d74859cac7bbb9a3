"""Ticks that meet each other, and people who save meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.models import QueuedJob
from schedules import services, sql
from schedules import tick as ticking
from schedules.firing import Verdict
from schedules.models import Schedule, SkippedSlot
from schedules.tick import tick
from tests.schedules.conftest import MakeSchedule, ago, clock, fresh, next_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def in_a_session_of_its_own(work: Callable[[], object]) -> object:
    try:
        return work()
    finally:
        connection.close()


@pytest.fixture
def aside() -> Iterator[Callable[..., Future[object]]]:
    """Run something in another thread, on a connection of its own."""
    with ThreadPoolExecutor(4) as pool:
        yield lambda work: pool.submit(in_a_session_of_its_own, work)


Aside = Callable[..., Future[object]]


@contextmanager
def held_before_it_writes(monkeypatch: pytest.MonkeyPatch, aside: Aside) -> Iterator[Future[object]]:
    """A tick that has read what is due and writes when this block ends."""
    read, write_now = threading.Event(), threading.Event()
    real = ticking._write

    def write(verdicts: Sequence[Verdict]) -> int:
        monkeypatch.setattr(ticking, "_write", real)
        read.set()
        assert write_now.wait(30)
        return real(verdicts)

    monkeypatch.setattr(ticking, "_write", write)
    running = aside(tick)
    try:
        assert read.wait(30)
        yield running
    finally:
        write_now.set()


def test_two_overlapping_ticks_make_one_job(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch, aside: Aside
) -> None:
    schedule = make_schedule(next_run_at=ago(seconds=20))

    with held_before_it_writes(monkeypatch, aside) as first:
        make_schedule("due meanwhile", next_run_at=ago(seconds=10))
        assert aside(tick).result(30) == 0
        assert not QueuedJob.objects.exists()

    assert first.result(30) == 1
    assert QueuedJob.objects.get().slot == schedule.next_run_at
    assert tick() == 1
    assert tick() == 0


def test_unique_slot_is_the_backstop_where_the_lock_protects_nothing(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch, aside: Aside
) -> None:
    make_schedule(next_run_at=ago(seconds=20))
    # As if another program ticked that knows of no lock, and passed by the row's own, too.
    monkeypatch.setattr(Schedule.objects.all().__class__, "select_for_update", lambda rows, **_: rows.all())
    monkeypatch.setattr(sql, "TRY_TICK_LOCK", "SELECT true AS got, statement_timestamp() AS now")

    with held_before_it_writes(monkeypatch, aside) as first:
        assert aside(tick).result(30) == 1

    assert first.result(30) == 0
    assert QueuedJob.objects.count() == 1


def test_lock_goes_with_the_transaction(make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch) -> None:
    make_schedule(next_run_at=ago(seconds=20))

    def write(_: Sequence[Verdict]) -> int:
        raise RuntimeError("the worker dies here")

    with monkeypatch.context() as patched:
        patched.setattr(ticking, "_write", write)
        with pytest.raises(RuntimeError):
            tick()

    assert tick() == 1


def test_row_that_somebody_is_saving_waits_and_the_others_fire(
    make_schedule: MakeSchedule, aside: Aside
) -> None:
    saved, other = (make_schedule(name, next_run_at=ago(seconds=20)) for name in ("saved", "other"))

    with transaction.atomic():
        Schedule.objects.select_for_update().get(id=saved.id)
        assert aside(tick).result(30) == 1

    assert QueuedJob.objects.get().schedule_id == other.id
    assert tick() == 1


def test_row_that_something_is_just_tied_to_fires(make_schedule: MakeSchedule, aside: Aside) -> None:
    schedule = make_schedule(next_run_at=ago(seconds=20))

    with transaction.atomic():
        SkippedSlot.objects.create(schedule=schedule, slot=ago(hours=1), reason="…")
        connection.check_constraints()
        assert aside(tick).result(30) == 1


@pytest.mark.parametrize("change", [{"name": "renamed"}, {"timezone": "Asia/Tokyo"}, {"skip_missed": True}])
def test_form_opened_before_a_tick_and_saved_after_it_fires_nothing_again(
    make_schedule: MakeSchedule, change: dict[str, Any]
) -> None:
    schedule = make_schedule(next_run_at=ago(seconds=20))
    opened = services.plan_of(schedule)
    assert tick() == 1
    ticked = next_of(schedule)

    services.update(schedule, replace(opened, **change), by=schedule.user)

    assert tick() == 0
    assert QueuedJob.objects.count() == 1
    assert (next_of(schedule) == ticked) == ("timezone" not in change)
    assert fresh(schedule).last_slot == schedule.next_run_at


def test_form_saved_while_a_tick_holds_the_row_waits_for_it(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch, aside: Aside
) -> None:
    schedule = make_schedule(cron_expression="* * * * *", next_run_at=ago(seconds=20))
    plan = replace(services.plan_of(schedule), cron_expression="*/1 * * * *")

    with held_before_it_writes(monkeypatch, aside) as ticked:
        saving = aside(lambda: services.update(schedule, plan, by=schedule.user))
        until(_somebody_waits_for_a_row, "the form waits for the tick")

    assert ticked.result(30) == 1
    saving.result(30)
    assert fresh(schedule).cron_expression == "*/1 * * * *"
    slot = QueuedJob.objects.get().slot
    assert slot is not None
    assert next_of(schedule) > slot
    assert next_of(schedule) - clock() <= timedelta(minutes=1)


def _somebody_waits_for_a_row() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%%FOR UPDATE%%'"""
        )
        return bool(cursor.fetchone()[0])
