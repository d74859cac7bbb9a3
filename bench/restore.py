"""How long a restore and a migration take beside the bare tools: same server, same client tools, same disk.

    python -m bench.restore [--size MB] [--rounds N] [--major N] [--jobs N] [--json FILE]

A restore into a new database from the folder of backups beside `createdb` and `pg_restore -j N FILE`; one as
a stream (jobs 1) beside `pg_restore < FILE`; a migration beside `pg_dump -Fc -Z0 | pg_restore`. The restored
database is on the server of its source. Neither side runs ANALYZE. The ways take turns; every second round
they do so in the opposite order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from bench.arrivals import bare_migration, bare_restore, migration, restore
from bench.compare import ratio, rounds_of, summary
from bench.house import House, house
from bench.processes import MB, own_processes
from bench.report import add_json_option, machine, table, write_json
from bench.ways import Run
from jobs.models import BackupJob

AIM = 1.10  # times what the bare tool takes


def ways_of(place: House, backup: BackupJob, jobs: int, pids: Sequence[int]) -> dict[str, Callable[[], Run]]:
    """In pairs, pgbr's first."""
    return {
        f"pgbr, {jobs} jobs": partial(restore, place, backup, {"jobs": jobs}, pids),
        f"pg_restore -j {jobs} FILE": partial(bare_restore, place, backup, jobs),
        "pgbr, a stream": partial(restore, place, backup, {"jobs": 1}, pids),
        "pg_restore < FILE": partial(bare_restore, place, backup, 1),
        "pgbr, migration": partial(migration, place, pids),
        "pg_dump | pg_restore": partial(bare_migration, place),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.restore", description=__doc__)
    parser.add_argument("--size", type=int, default=1500, help="MB of the database (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--major", type=int, default=17, help="of the server (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="of the parallel restore (default: %(default)s)")
    add_json_option(parser)
    given = parser.parse_args()
    before = machine()
    with house(given.major, given.size) as place, place.worker() as worker:
        _, backup = place.back_up(place.folder)
        ways = ways_of(place, backup, given.jobs, own_processes(worker.pid))
        found = rounds_of(ways, given.rounds)
        size, tools = place.size, place.toolset.label
    names = list(ways)
    lines = [summary(way, runs) for way, runs in found.items()]
    ratios = [ratio(found, ours, bare, AIM) for ours, bare in zip(names[::2], names[1::2], strict=True)]
    print(f"A database of {size / MB:.0f} MB, pg_restore {tools}, {given.rounds} rounds;")
    print(f"{before['cores']} cores, load {before['load']} before. Seconds and MB, medians:\n")
    print(f"{table(lines)}\n\n{table(ratios)}")
    results = {"size": size, "toolset": tools, "load_before": before["load"]}
    write_json(given.json, results | {"runs": found, "ways": lines, "ratios": ratios})


if __name__ == "__main__":
    main()
