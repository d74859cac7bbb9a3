"""How much a worker grows while it backs up, restores and migrates a large database.

    python -m bench.memory [--size MB] [--major N] [--json FILE]

Idle is a fresh worker that has signed on and waits, so what a first job imports counts as growth. Both are
sums over the worker's processes, of what each has for itself and its share of what several have (Pss).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench import arrivals
from bench.house import House, house
from bench.processes import MB, Memory, at_rest, own_processes, watched
from bench.report import add_json_option, table, write_json
from jobs.models import BackupJob, Storage

LIMIT = 60.0  # MB of growth


@dataclass(frozen=True)
class Growth:
    """MB. `peak`: the sum of the most that each process ever had resident, shared pages counted in full."""

    target: str
    stored: float
    seconds: float
    idle: float
    highest: float
    growth: float
    idle_peak: float
    peak: float
    after: float


def measure(place: House, target: str, work: Callable[[], int]) -> Growth:
    """`work` does it through the queue and says how many bytes were stored or went through."""
    with place.worker() as worker:
        pids = own_processes(worker.pid)
        idle = at_rest(pids)
        start = time.monotonic()
        with watched(pids) as watch:
            stored = work()
        seconds = time.monotonic() - start
        after = at_rest(pids)
    return Growth(
        target=target,
        stored=round(stored / MB, 1),
        seconds=round(seconds, 1),
        idle=round(idle.total, 1),
        highest=round(watch.highest.total, 1),
        growth=round(watch.highest.total - idle.total, 1),
        idle_peak=round(_peak(idle), 1),
        peak=round(_peak(after), 1),
        after=round(after.total, 1),
    )


def back_up(place: House, storage: Storage) -> int:
    _, row = place.back_up(storage)
    place.delete(row)
    return row.size or 0


def all_of(place: House) -> Iterator[Growth]:
    yield measure(place, "backup to the folder", partial(back_up, place, place.folder))
    yield measure(place, "backup to S3", partial(back_up, place, place.bucket))
    for name, storage in (("the folder", place.folder), ("S3", place.bucket)):
        with place.worker():
            _, row = place.back_up(storage)
        for jobs in (1, 2):
            work = partial(restored, place, row, jobs)
            yield measure(place, f"restore from {name}, {jobs} jobs", work)
        place.delete(row)
    yield measure(place, "migration", lambda: arrivals.migration(place, []).stored)


def restored(place: House, row: BackupJob, jobs: int) -> int:
    return arrivals.restore(place, row, {"jobs": jobs}, []).stored


def _peak(memory: Memory) -> float:
    return sum(memory.peak.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--size", type=int, default=2000, help="MB of the database (default: %(default)s)")
    parser.add_argument("--major", type=int, default=17, help="of the server (default: %(default)s)")
    add_json_option(parser)
    given = parser.parse_args()
    with house(given.major, given.size) as place:
        found = list(all_of(place))
        print(f"\nA worker and a database of {place.size / MB:.0f} MB. Memory in MB, tools not counted:\n")
    print(table(found))
    worst = max(one.growth for one in found)
    print(f"\nGrowth at most {LIMIT:.0f} MB: {'met' if worst <= LIMIT else 'MISSED'} ({worst:.1f} MB).")
    write_json(given.json, {"size": place.size, "limit": LIMIT, "memory": found})


if __name__ == "__main__":
    main()
