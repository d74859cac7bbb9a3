"""How long a backup takes beside the bare tools: same server, same client tools, same disk and bucket.

    python -m bench.backup [--size MB] [--rounds N] [--major N] [--json FILE]

To a folder beside `pg_dump -Fc -Z zstd:3 -f FILE`; to S3 beside the same pg_dump piped into boto3's
upload_fileobj. The four take turns; every second round they do so in the opposite order.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.house import House, house
from bench.processes import MB, memory, own_processes
from bench.report import add_json_option, machine, table, write_json
from bench.ways import Run, bare_folder, bare_s3, pgbr

AIM = 1.15  # times what the bare tool takes

BARE_FOLDER, PGBR_FOLDER = "pg_dump to a file", "pgbr to a folder"
BARE_S3, PGBR_S3 = "pg_dump to boto3", "pgbr to S3"


@dataclass(frozen=True)
class Line:
    """Medians over the rounds; seconds and MB."""

    way: str
    seconds: float
    fastest: float
    slowest: float
    from_enqueueing: float
    cpu: float
    tools_cpu: float
    stored: float


@dataclass(frozen=True)
class Ratio:
    """`ratio`: the median of the rounds' ratios, so that what slows a whole round down falls out; beside it
    the lowest and highest of them and the ratio of the medians. `extra`: seconds between the medians."""

    of: str
    to: str
    ratio: float
    lowest: float
    highest: float
    of_medians: float
    extra: float
    from_enqueueing: float
    aim: str


def take_turns(place: House, rounds: int) -> tuple[dict[str, list[Run]], float]:
    """The runs by their way, and the sum of the most that the worker's processes had resident, in MB."""
    with place.worker() as worker:
        pids = own_processes(worker.pid)
        ways: dict[str, Callable[[], Run]] = {
            BARE_FOLDER: lambda: bare_folder(place),
            PGBR_FOLDER: lambda: pgbr(place, place.folder, pids),
            BARE_S3: lambda: bare_s3(place),
            PGBR_S3: lambda: pgbr(place, place.bucket, pids),
        }
        found: dict[str, list[Run]] = {way: [] for way in ways}
        for number in range(rounds):
            for way in ways if number % 2 == 0 else reversed(ways):
                os.sync()  # what one has left to be written is not the next one's burden
                found[way].append(ways[way]())
                print(f"round {number + 1}, {way}: {found[way][-1].seconds:.2f} s", file=sys.stderr)
        return found, sum(memory(pids).peak.values())


def summary(way: str, runs: list[Run]) -> Line:
    times = [run.seconds for run in runs]
    return Line(
        way=way,
        seconds=round(median(times), 2),
        fastest=round(min(times), 2),
        slowest=round(max(times), 2),
        from_enqueueing=round(median(run.waited for run in runs), 2),
        cpu=round(median(run.cpu for run in runs), 2),
        tools_cpu=round(median(run.tools_cpu for run in runs), 2),
        stored=round(median(run.stored for run in runs) / MB, 1),
    )


def ratio(found: dict[str, list[Run]], ours: str, bare: str) -> Ratio:
    pairs = list(zip(found[ours], found[bare], strict=True))
    took, needed = (median(run.seconds for run in found[way]) for way in (ours, bare))
    single = [mine.seconds / its.seconds for mine, its in pairs]
    return Ratio(
        of=ours,
        to=bare,
        ratio=round(median(single), 3),
        lowest=round(min(single), 3),
        highest=round(max(single), 3),
        of_medians=round(took / needed, 3),
        extra=round(took - needed, 2),
        from_enqueueing=round(median(mine.waited / its.seconds for mine, its in pairs), 3),
        aim=f"{AIM} {'met' if median(single) <= AIM else 'MISSED'}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.backup", description=__doc__)
    parser.add_argument("--size", type=int, default=1500, help="MB of the database (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of each way (default: %(default)s)")
    parser.add_argument("--major", type=int, default=17, help="of the server (default: %(default)s)")
    add_json_option(parser)
    given = parser.parse_args()
    before = machine()
    with house(given.major, given.size) as place:
        found, peak = take_turns(place, given.rounds)
    lines = [summary(way, runs) for way, runs in found.items()]
    ratios = [ratio(found, PGBR_FOLDER, BARE_FOLDER), ratio(found, PGBR_S3, BARE_S3)]
    print(f"A database of {place.size / MB:.0f} MB, pg_dump {place.toolset.label}, {given.rounds} rounds;")
    print(f"{before['cores']} cores, load {before['load']} before. Seconds and MB, medians:\n")
    print(f"{table(lines)}\n\n{table(ratios)}")
    print(f"\nMost memory ever resident, summed over the worker's processes: {peak:.0f} MB.")
    results = {"size": place.size, "toolset": place.toolset.label, "load_before": before["load"]}
    write_json(given.json, results | {"runs": found, "ways": lines, "ratios": ratios, "peak": peak})


if __name__ == "__main__":
    main()
