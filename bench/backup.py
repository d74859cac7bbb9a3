"""How long a backup takes beside the bare tools: same server, same client tools, same disk and bucket.

    python -m bench.backup [--size MB] [--rounds N] [--major N] [--json FILE]

To a folder beside `pg_dump -Fc -Z zstd:3 -f FILE`; to S3 beside the same pg_dump piped into boto3's
upload_fileobj. The four take turns; every second round they do so in the opposite order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from bench.compare import ratio, rounds_of, summary
from bench.house import House, house
from bench.processes import MB, memory, own_processes
from bench.report import add_json_option, machine, table, write_json
from bench.ways import Run, bare_folder, bare_s3, pgbr

AIM = 1.15  # times what the bare tool takes

BARE_FOLDER, PGBR_FOLDER = "pg_dump to a file", "pgbr to a folder"
BARE_S3, PGBR_S3 = "pg_dump to boto3", "pgbr to S3"


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
        found = rounds_of(ways, rounds)
        return found, sum(memory(pids).peak.values())


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
    ratios = [ratio(found, PGBR_FOLDER, BARE_FOLDER, AIM), ratio(found, PGBR_S3, BARE_S3, AIM)]
    print(f"A database of {place.size / MB:.0f} MB, pg_dump {place.toolset.label}, {given.rounds} rounds;")
    print(f"{before['cores']} cores, load {before['load']} before. Seconds and MB, medians:\n")
    print(f"{table(lines)}\n\n{table(ratios)}")
    print(f"\nMost memory ever resident, summed over the worker's processes: {peak:.0f} MB.")
    results = {"size": place.size, "toolset": place.toolset.label, "load_before": before["load"]}
    write_json(given.json, results | {"runs": found, "ways": lines, "ratios": ratios, "peak": peak})


if __name__ == "__main__":
    main()
