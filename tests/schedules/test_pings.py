"""Calls get through to a monitor that answers, in order and once, and hold up nobody where one does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections
from django.db.models.functions import Now

from jobs import calling
from jobs.models import BackupJob
from schedules import pings
from schedules.models import Schedule, SchedulePing
from tests.schedules.conftest import MakeSchedule
from tests.schedules.monitor import Answer, Monitor
from tests.schedules.outbox import HOUR, monitor, pinged, run_of

__all__ = ["monitor", "pinged"]

pytestmark = pytest.mark.django_db(transaction=True)


def due_now() -> None:
    SchedulePing.objects.filter(next_attempt_at__isnull=False).update(next_attempt_at=Now())


def test_start_goes_before_the_verdict(pinged: Schedule, monitor: Monitor) -> None:
    backup = run_of(pinged, "failed", error="The disk is full.")
    pings.collect()
    SchedulePing.objects.filter(kind="failure").update(next_attempt_at=Now() - HOUR)

    assert pings.send_due() == 2
    assert monitor.paths == ["/start", "/failure"]
    assert "shop (nightly" in monitor.calls[0].body
    assert str(backup.id) in monitor.calls[1].body
    assert "failed. The disk is full." in monitor.calls[1].body
    assert not SchedulePing.objects.filter(sent_at=None).exists()
    assert pings.send_due() == 0


def test_success_says_how_much_it_was(pinged: Schedule, monitor: Monitor) -> None:
    run_of(pinged, size=15_300_000)
    pings.collect()
    pings.send_due()

    assert "15.3 MB in 1m" in monitor.calls[1].body


def test_failed_call_is_made_again_later(pinged: Schedule, monitor: Monitor) -> None:
    monitor.answers["/start"] = [500]
    run_of(pinged, "running")
    pings.collect()

    assert pings.send_due() == 0
    ping = SchedulePing.objects.get()
    assert ping.error == "127.0.0.1 answered 500 Internal Server Error."
    assert ping.next_attempt_at is not None
    assert pings.send_due() == 0, "not before its pause"
    due_now()
    assert pings.send_due() == 1
    ping.refresh_from_db()
    assert ping.attempts == 2
    assert not ping.error
    assert not ping.next_attempt_at


def test_pauses_grow_and_after_an_hour_it_is_given_up(pinged: Schedule, monitor: Monitor) -> None:
    monitor.answers["/start"] = [500] * 20
    run_of(pinged, "running")
    pings.collect()
    for _ in range(4):
        pings.send_due()
        due_now()
    SchedulePing.objects.update(created_at=Now() - timedelta(minutes=57))

    pings.send_due()
    ping = SchedulePing.objects.get()
    assert ping.attempts == 5
    assert (ping.next_attempt_at, ping.sent_at) == (None, None)
    assert ping.error is not None
    assert "500" in ping.error
    assert len(monitor.calls) == 5


def test_start_is_not_told_after_the_verdict(pinged: Schedule, monitor: Monitor) -> None:
    monitor.answers["/start"] = [500]
    run_of(pinged)
    pings.collect()

    assert pings.send_due() == 1
    due_now()
    assert pings.send_due() == 0
    assert monitor.paths == ["/start", "/success"]
    start = SchedulePing.objects.get(kind="start")
    assert start.next_attempt_at is None
    assert start.error == f"127.0.0.1 answered 500 Internal Server Error. {pings.TOO_LATE}"


def test_verdict_waits_while_its_start_is_on_its_way(pinged: Schedule, monitor: Monitor) -> None:
    run_of(pinged, "running")
    pings.collect()
    arrived, go_on = threading.Event(), threading.Event()
    monitor.answers["/start"] = [after(go_on, telling=arrived)]
    other = in_a_thread(pings.send_due)
    assert arrived.wait(9)
    BackupJob.objects.update(status="failed", completed_at=Now())
    pings.collect()

    assert pings.send_due() == 0
    go_on.set()
    other.join(9)
    assert pings.send_due() == 1
    assert monitor.paths == ["/start", "/failure"]


def after(event: threading.Event | None = None, *, telling: threading.Event | None = None) -> Answer:
    """A monitor's answer that comes only then, or tells that the call is there."""

    def answer() -> int:
        if telling:
            telling.set()
        return 200 if event is None or event.wait(9) else 500

    return answer


def in_a_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_silent_monitor_holds_nobody_up(
    make_schedule: MakeSchedule, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "LONGEST_SECONDS", 5.0)
    others = threading.Event()
    with Monitor() as silent:
        for number in range(2):
            silent.answers[f"/{number}"] = [after(others)]
            run_of(make_schedule(f"silent {number}", ping_success_url=f"{silent.url}/{number}"))
        run_of(make_schedule("lively", ping_success_url=f"{monitor.url}/lively"))
        monitor.answers["/lively"] = [after(telling=others)]
        pings.collect()

        assert pings.send_due() == 3, "the silent ones answer only once the lively one has been called"


def test_host_that_was_silent_is_not_waited_for_again(
    make_schedule: MakeSchedule, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "LONGEST_SECONDS", 0.3)
    monkeypatch.setattr(pings, "THREADS", 1)
    over = threading.Event()
    for number in range(3):
        monitor.answers[f"/{number}"] = [after(over)]
        run_of(make_schedule(f"s{number}", ping_success_url=f"{monitor.url}/{number}"))
    pings.collect()

    assert pings.send_due() == 0
    over.set()
    assert len(monitor.calls) == 1
    errors = sorted(str(error) for error in SchedulePing.objects.values_list("error", flat=True))
    assert ["Not tried" in error for error in errors] == [False, True, True]


def test_worker_that_is_about_to_end_leaves_the_rest_to_others(
    pinged: Schedule, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(pinged)
    pings.collect()
    monkeypatch.setattr("jobs.ending.has_begun", lambda: True)

    assert pings.send_due() == 0
    assert not monitor.calls
    assert SchedulePing.objects.exclude(next_attempt_at=None).count() == 2


def test_no_connection_is_held_while_a_monitor_takes_its_time(
    pinged: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, held = connections["default"], []
    monkeypatch.setattr(pings, "call", lambda *_: held.append(own.connection))
    run_of(pinged, "running")
    pings.collect()

    assert pings.send_due() == 1
    assert held == [None]


def test_address_that_was_taken_away_is_not_called(pinged: Schedule, monitor: Monitor) -> None:
    run_of(pinged, "running")
    pings.collect()
    Schedule.objects.update(ping_start_url="")

    assert pings.send_due() == 0
    ping = SchedulePing.objects.get()
    assert (ping.error, ping.next_attempt_at) == (pings.NO_ADDRESS, None)
    assert not monitor.calls


def test_three_workers_make_each_call_once(pinged: Schedule, monitor: Monitor) -> None:
    for _ in range(20):
        run_of(pinged)

    def work() -> None:
        while SchedulePing.objects.filter(sent_at=None).exists() or pings.collect():
            pings.send_due()

    pings.collect()
    threads = [in_a_thread(work) for _ in range(3)]
    for thread in threads:
        thread.join(20)

    assert sorted(monitor.paths) == ["/start"] * 20 + ["/success"] * 20
    assert len({called.body for called in monitor.calls}) == 40


def test_lease_of_a_worker_that_died_runs_out(pinged: Schedule, monitor: Monitor) -> None:
    run_of(pinged)
    pings.collect()
    assert len(pings._lease()) == 2
    assert pings.send_due() == 0

    SchedulePing.objects.update(next_attempt_at=Now() - HOUR)
    assert pings.send_due() == 2
    assert monitor.paths == ["/start", "/success"]
