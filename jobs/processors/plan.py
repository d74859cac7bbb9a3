"""How an artifact gets into its target: which tool, over the disk or as a stream, in how many jobs."""

from __future__ import annotations

import os
from dataclasses import dataclass

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.restore_client import through_sql
from jobs.pgtools.restore_flags import PARALLEL_FORMATS, RestoreFlags
from jobs.pgtools.toolset import Toolset

MOST_JOBS_UNASKED = 4


@dataclass(frozen=True)
class Plan:
    """`beside`: into a database of its own, which then takes the target's name. `staged`: on disk first, so
    that all of it is compared with the record before the target is touched. `via_sql`: the client is newer
    than the server can bear, so pg_restore only writes SQL, which pgbr sends. `client` is None for plain SQL.
    """

    beside: bool
    single_transaction: bool
    jobs: int
    staged: bool
    via_sql: bool
    client: Toolset | None


def plan(
    contents: Contents,
    flags: RestoreFlags,
    mode: str,
    target_major: int,
    client: Toolset | None,
    *,
    room: bool = True,
) -> Plan:
    """`room`: whether the artifact may be staged at all (space, or a file that is there already)."""
    via_sql = client is not None and through_sql(client, target_major)
    single = flags.in_one_transaction(mode)
    jobs = _jobs(contents, flags, mode, single=single, via_sql=via_sql, room=room)
    beside = mode in ("new", "replace") or (mode == "empty" and not single)
    return Plan(
        beside=beside,
        single_transaction=single,
        jobs=jobs,
        staged=jobs > 1 or _needs_disk(contents, flags) or not (beside or single),
        via_sql=via_sql,
        client=client,
    )


def _jobs(
    contents: Contents, flags: RestoreFlags, mode: str, *, single: bool, via_sql: bool, room: bool
) -> int:
    if contents.format not in PARALLEL_FORMATS or single or via_sql:
        return 1
    if flags.jobs or mode not in ("new", "replace"):
        return max(flags.jobs, 1)
    if contents.format == "custom" and not room:
        return 1
    return max(1, min(MOST_JOBS_UNASKED, os.cpu_count() or 1))


def _needs_disk(contents: Contents, flags: RestoreFlags) -> bool:
    """A stream must be read to its end before the commit: pg_restore does so only if it restores the rows of
    everything. And from a pipe it finds chosen tables but slowly."""
    if contents.format == "plain":
        return False
    return contents.format != "custom" or flags.selects or not flags.restores_rows or bool(flags.section)
