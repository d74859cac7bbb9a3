"""Ten thousand schedules due at once: how long it takes to tick them, and whether signs of life keep time.

    python -m bench.tick [--schedules N] [--json FILE]

Workers take no backups here, so all that is measured is their upkeep, with production's timings. The
heartbeat is that of the upkeep process, which shares a thread with the tick: the longest time between two of
them, in any worker, from before the schedules come due until after all have ticked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.house import TIMINGS  # makes Django ready, for what follows

# isort: split

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models import Max, Min
from django.db.models.functions import Now

from bench.processes import at_rest, own_processes, watched
from bench.report import add_json_option, machine, table, write_json
from jobs.models import Database, QueuedJob, WorkerProcess
from schedules.models import Schedule
from tests.waiting import until
from tests.workers import RunningWorker

GROWTH_LIMIT = 60.0  # MB, of all processes of a worker together
LATEST = 30.0  # seconds between two heartbeats of 15: a third of what counts as silence
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
BATCH = 1000


@dataclass(frozen=True)
class Ticked:
    """`seconds`: from the first job to the last, with the pauses between turns. `growth`: MB, of the worker
    that grew most. `longest_gap`: seconds between two heartbeats."""

    schedules: str
    workers: int
    seconds: float
    growth: float
    longest_gap: float


class Pulse:
    """The longest time seen between two heartbeats of one upkeep process."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.beats = 0
        self._last: dict[str, datetime] = {}

    def look(self) -> int:
        """How many have been seen so far."""
        for name, at in WorkerProcess.objects.filter(role="upkeep").values_list("name", "heartbeat_at"):
            if name in self._last and self._last[name] != at:
                self.longest = max(self.longest, (at - self._last[name]).total_seconds())
                self.beats += 1
            self._last[name] = at
        return self.beats


def same(_: int) -> dict[str, Any]:
    return {"cron_expression": "30 2 * * *", "timezone": "Europe/Berlin"}


def different(number: int) -> dict[str, Any]:
    fields = (number % 60, number // 60 % 24, 1 + number // 1440 % 28)
    expression = "{} {} {} * *".format(*fields)
    return {"cron_expression": expression, "timezone": ZONES[number % len(ZONES)]}


def missed(number: int) -> dict[str, Any]:
    minutes = f"{number % 30}-{30 + number // 30 % 30}"
    return {"cron_expression": f"{minutes} * * * *", "timezone": ZONES[number // 900 % len(ZONES)]}


CASES: Mapping[str, tuple[Any, timedelta, int]] = {
    "of one expression": (same, timedelta(0), 1),
    "each of its own": (different, timedelta(0), 1),
    "each of its own, three workers": (different, timedelta(0), 3),
    "missed for a year of minutes": (missed, timedelta(days=365), 1),
}


def measure(database: Database, name: str, count: int) -> Ticked:
    timing, missed_for, number = CASES[name]
    _schedules(database, count, timing)
    with workers(number) as running:
        pids = [own_processes(worker.pid) for worker in running]
        idle = [at_rest(of_one).total for of_one in pids]
        pulse = Pulse()
        until(lambda: pulse.look() >= number, "their pulse is taken", seconds=60)
        with ExitStack() as stack:
            watches = [stack.enter_context(watched(of_one)) for of_one in pids]
            Schedule.objects.update(next_run_at=Now() - missed_for)
            until(lambda: pulse.look() and _all_ticked(), "all tick", seconds=600)
            times = QueuedJob.objects.aggregate(first=Min("created_at"), last=Max("created_at"))
            seen = pulse.beats
            until(lambda: pulse.look() >= seen + number, "they live on", seconds=60)
    growth = max(watch.highest.total - before for watch, before in zip(watches, idle, strict=True))
    return Ticked(
        schedules=name,
        workers=number,
        seconds=round((times["last"] - times["first"]).total_seconds(), 1),
        growth=round(growth, 1),
        longest_gap=round(pulse.longest, 1),
    )


def _all_ticked() -> bool:
    return not Schedule.objects.filter(last_slot__isnull=True).exists()


def _schedules(database: Database, count: int, timing: Any) -> None:
    QueuedJob.objects.all().delete()
    Schedule.objects.all().delete()
    Schedule.objects.bulk_create(
        (
            Schedule(
                user=database.user,
                database=database,
                name=f"schedule {number}",
                next_run_at=Now() + timedelta(days=1),
                **timing(number),
            )
            for number in range(count)
        ),
        batch_size=BATCH,
    )


@contextmanager
def workers(number: int) -> Iterator[list[RunningWorker]]:
    """Fresh ones for another queue than that of backups; inside, each upkeep process has signed on."""
    WorkerProcess.objects.all().delete()
    with TemporaryDirectory() as folder:
        logs = [Path(folder) / f"worker-{place}.log" for place in range(number)]
        arguments = ["--queue", "restore"]
        running = [RunningWorker(log, arguments, noop=True, environment=TIMINGS) for log in logs]
        try:
            signed_on = WorkerProcess.objects.filter(role="upkeep")
            until(lambda: signed_on.count() == number, "they sign on")
            yield running
        finally:
            for worker in running:
                worker.terminate()


def _met(value: float, limit: float) -> str:
    return "met" if value <= limit else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tick", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="(default: %(default)s)")
    add_json_option(parser)
    given = parser.parse_args()
    before = machine()
    call_command("migrate", verbosity=0)
    user = User.objects.create_superuser("bench")
    database = Database.objects.create(user=user, name="shop")
    started = time.monotonic()
    found = [measure(database, name, given.schedules) for name in CASES]
    print(f"\n{given.schedules} schedules due at once, in {time.monotonic() - started:.0f} s;")
    print(f"{before['cores']} cores, load {before['load']} before. Seconds and MB:\n\n{table(found)}")
    gap, growth = max(one.longest_gap for one in found), max(one.growth for one in found)
    print(f"\nHeartbeats at most {LATEST:.0f} s apart: {_met(gap, LATEST)} ({gap:.1f} s).")
    print(f"Growth at most {GROWTH_LIMIT:.0f} MB: {_met(growth, GROWTH_LIMIT)} ({growth:.1f} MB).")
    write_json(given.json, {"schedules": given.schedules, "load_before": before["load"], "ticked": found})


if __name__ == "__main__":
    main()
