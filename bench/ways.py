"""The four ways to dump the same database that are compared, each timed once per call."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.house import House
from bench.processes import cpu
from jobs.models import Storage


@dataclass(frozen=True)
class Run:
    """Seconds; `stored` in bytes.

    `seconds`: for pgbr from the job's start to its completion, as its history row has them; `waited`: from
    enqueueing. `cpu`: of our own processes (for boto3: of the one that calls it); `tools_cpu`: of pg_dump
    and whatever else was run.
    """

    seconds: float
    waited: float
    cpu: float
    tools_cpu: float
    stored: int


def bare_folder(place: House) -> Run:
    """pg_dump to a file, which it syncs to disk as pgbr does."""
    file = place.scratch / "bare.dump"

    def dump() -> int:
        subprocess.run(_pg_dump(place, "-f", str(file)), env=place.environment, check=True)
        return file.stat().st_size

    try:
        return timed(dump)
    finally:
        file.unlink(missing_ok=True)


def bare_s3(place: House) -> Run:
    """The client is made before the clock starts, as by a script that uploads more than once."""
    client, bucket = place.s3.client(), place.bucket.bucket

    def dump() -> int:
        with subprocess.Popen(_pg_dump(place), env=place.environment, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            client.upload_fileobj(child.stdout, bucket, "bare.dump")
        if child.returncode:
            raise SystemExit("pg_dump failed")
        return int(client.head_object(Bucket=bucket, Key="bare.dump")["ContentLength"])

    try:
        return timed(dump)
    finally:
        client.delete_object(Bucket=bucket, Key="bare.dump")


def pgbr(place: House, storage: Storage, pids: Sequence[int]) -> Run:
    """`pids`: of the worker's processes."""
    before = cpu(pids)
    queued, row = place.back_up(storage)
    spent = cpu(pids).since(before)
    assert row.started_at is not None
    assert row.completed_at is not None
    place.delete(row)
    return Run(
        seconds=(row.completed_at - row.started_at).total_seconds(),
        waited=(row.completed_at - queued.created_at).total_seconds(),
        cpu=spent.own,
        tools_cpu=spent.tools,
        stored=row.size or 0,
    )


def _pg_dump(place: House, *arguments: str) -> list[str]:
    return [str(place.toolset.tool("pg_dump")), "-Fc", "-Z", "zstd:3", *arguments]


def timed(work: Callable[[], int]) -> Run:
    """`work` gives the bytes that are stored."""
    own, tools = _spent(resource.RUSAGE_SELF), _spent(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    stored = work()
    seconds = time.monotonic() - start
    return Run(
        seconds=seconds,
        waited=seconds,
        cpu=_spent(resource.RUSAGE_SELF) - own,
        tools_cpu=_spent(resource.RUSAGE_CHILDREN) - tools,
        stored=stored,
    )


def _spent(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
