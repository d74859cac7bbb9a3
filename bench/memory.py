"""How much a worker grows while it backs up a large database, to a folder and to S3.

    python -m bench.memory [--size MB] [--major N] [--json FILE]

Idle is a fresh worker that has signed on and waits, so what a first job imports counts as growth. Both are
sums over the worker's processes, of what each has for itself and its share of what several have (Pss).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from bench.house import House, house
from bench.processes import MB, Memory, at_rest, own_processes, watched
from bench.report import add_json_option, table, write_json
from jobs.models import Storage

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


def measure(place: House, target: str, storage: Storage) -> Growth:
    with place.worker() as worker:
        pids = own_processes(worker.pid)
        idle = at_rest(pids)
        with watched(pids) as watch:
            queued, row = place.back_up(storage)
        after = at_rest(pids)
        place.delete(row)
    ended = row.completed_at or queued.created_at
    return Growth(
        target=target,
        stored=round((row.size or 0) / MB, 1),
        seconds=round((ended - queued.created_at).total_seconds(), 1),
        idle=round(idle.total, 1),
        highest=round(watch.highest.total, 1),
        growth=round(watch.highest.total - idle.total, 1),
        idle_peak=round(_peak(idle), 1),
        peak=round(_peak(after), 1),
        after=round(after.total, 1),
    )


def _peak(memory: Memory) -> float:
    return sum(memory.peak.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--size", type=int, default=2000, help="MB of the database (default: %(default)s)")
    parser.add_argument("--major", type=int, default=17, help="of the server (default: %(default)s)")
    add_json_option(parser)
    given = parser.parse_args()
    with house(given.major, given.size) as place:
        found = [measure(place, "folder", place.folder), measure(place, "S3", place.bucket)]
        print(
            f"\nA worker backs up a database of {place.size / MB:.0f} MB. Memory in MB, tools not counted:\n"
        )
    print(table(found))
    worst = max(one.growth for one in found)
    print(f"\nGrowth at most {LIMIT:.0f} MB: {'met' if worst <= LIMIT else 'MISSED'} ({worst:.1f} MB).")
    write_json(given.json, {"size": place.size, "limit": LIMIT, "memory": found})


if __name__ == "__main__":
    main()
