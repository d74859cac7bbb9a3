"""The migration processor: pg_dump of one database straight into pg_restore of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jobs import scratch
from jobs.crypto import CannotDecrypt
from jobs.models import Database, MigrationJob
from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import InvalidFlags, PgToolsError
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.restore_flags import RestoreFlags, mode_problems
from jobs.processors import slots
from jobs.processors import source as sources
from jobs.processors.at_target.again import committed_before, require_repeatable
from jobs.processors.at_target.creation import Properties
from jobs.processors.at_target.examination import Examined, Wanted, examine, prepare
from jobs.processors.at_target.landing import Landing, Wish
from jobs.processors.at_target.lock import Hold, held
from jobs.processors.at_target.sameness import require_another
from jobs.processors.at_target.writing import resumed, untouched, written
from jobs.processors.base import JobFailed, Outcome
from jobs.processors.control import Control
from jobs.processors.explained import explained
from jobs.processors.load import Load
from jobs.processors.payload import aim_in, uuid_in
from jobs.processors.pipe import Pipe, newest_for
from jobs.processors.progress import reporting
from jobs.queue.rows import Job
from jobs.secrets import unseal
from jobs.targets import conninfo_for, parse

ONE_JOB = "jobs: a migration that streams has one job at each end; choose staged for more."
MANAGED = ("format", "compress", "clean", "if_exists", "create")


@dataclass(frozen=True)
class Order:
    """What a payload asks for, looked up. `database`: the source's registration, if it has one."""

    source: Conninfo
    target: Conninfo
    target_name: str
    mode: str
    dump: DumpFlags
    restore: RestoreFlags
    staged: bool
    database: Database | None
    row: MigrationJob


class MigrationProcessor:
    @contextmanager
    def work(self, job: Job, control: Control) -> Iterator[Outcome]:
        order = control.patiently(partial(_order, job))
        secrets = (*order.source.secrets, *order.target.secrets)
        with ExitStack() as stack:
            stack.enter_context(explained(control, secrets))
            folder = stack.enter_context(scratch.folder(f"{job.queue}-{job.id.hex[:8]}"))
            scratch.sweep_orphans()
            # Each side writes its password file and certificates into a folder of its own.
            ours, theirs = folder / "target", folder / "source"
            for side in (ours, theirs):
                side.mkdir()
            hold = stack.enter_context(
                held(order.target, order.target_name, ours, job.id, job.created_at, control)
            )
            outcome = resumed(hold, order.row, order.mode)
            if outcome is None:
                outcome = stack.enter_context(_migrated(job, order, hold, theirs, control))
            yield outcome


@contextmanager
def _migrated(job: Job, order: Order, hold: Hold, folder: Path, control: Control) -> Iterator[Outcome]:
    source = sources.examine(
        order.source, order.dump, folder, hold.application_name, control, spare=hold.pids
    )
    require_another(source, hold)
    limit = order.database.max_parallel if order.database else None
    with slots.held(order.source, limit, job, folder, control) as warnings:
        client = newest_for(source, hold.session or hold.inside_or_fail())
        tube = Pipe(
            replace(source, toolset=client), order.dump, order.staged, folder, hold.application_name, control
        )
        contents = tube.outline()
        wanted = wanted_of(tube, contents, order.restore, order.mode)
        seen = examine(hold, wanted, folder, control)
        seen.warnings += [*source.warnings, *warnings]
        earlier = committed_before(hold, order.row, contents, seen.facts, seen.flags, seen.plan)
        if earlier is not None:
            yield earlier
            return
        require_repeatable(order.row, contents, seen.facts, seen.flags, seen.plan)
        prepare(hold, seen, wanted, folder)
        with _written(job, order, hold, tube, seen, contents, control) as outcome:
            yield outcome


@contextmanager
def _written(
    job: Job, order: Order, hold: Hold, tube: Pipe, seen: Examined, contents: Contents, control: Control
) -> Iterator[Outcome]:
    facts = tube.source.facts
    made_like = Properties(facts.encoding, facts.locale_provider, facts.collate, facts.ctype, facts.locale)
    owner = facts.owner if seen.flags.restores_owners else seen.flags.role
    wish = Wish(
        order.mode,
        seen.plan.beside,
        seen.plan.single_transaction,
        seen.flags.keep_days,
        made_like,
        owner,
        facts.database_settings,
    )
    load = Load(contents, seen.flags, order.mode, seen.plan, hold, control, None, warnings=seen.warnings)
    tube.attach(load, seen.facts.assumable)

    def fill(place: Landing) -> None:
        tube.run(place.conninfo)

    with reporting(job, control, tube.snapshot):
        with untouched(order.row, control):
            tube.stage()
        with written(job, hold, wish, load, fill, control) as outcome:
            columns = dict(outcome.columns) | {"size": tube.count}
            columns["log"] = "\n".join(part for part in (tube.log, str(columns.get("log", ""))) if part)
            yield Outcome(columns, outcome.also)


def wanted_of(tube: Pipe, contents: Contents, flags: RestoreFlags, mode: str) -> Wanted:
    size = tube.source.bytes if tube.staged else 0
    return Wanted(contents, flags, mode, size, streamed=not tube.staged, globals_sql=tube.globals_sql)


def dump_flags(values: object, *, staged: bool) -> DumpFlags:
    """The options of a migration's pg_dump, whose format is not to be chosen. Raises `InvalidFlags`."""
    if not isinstance(values, Mapping):
        return DumpFlags.from_dict(values)
    chosen = [f"{name}: pgbr chooses this for a migration." for name in MANAGED if name in values]
    if not staged and values.get("jobs", 1) != 1:
        chosen.append(ONE_JOB)
    if chosen:
        raise InvalidFlags(chosen)
    return DumpFlags.from_dict({**values, "format": "directory" if staged else "custom"})


def flags_problems(restore: RestoreFlags, mode: str, *, staged: bool) -> list[str]:
    """What of a migration's options does not go together, a sentence each."""
    problems = mode_problems(restore, mode)
    if restore.jobs > 1 and not staged:
        problems.append(ONE_JOB)
    return problems


# What is asked -----------------------------------------------------------------------------------


def _order(job: Job) -> Order:
    """Raises `JobFailed` for a payload that is not the expected shape or names what is not there."""
    payload = job.payload
    flags = payload.get("flags") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(flags, dict):
        raise JobFailed(
            "The job's payload is not of the expected shape (an object with mode, target_name and flags)."
        )
    mode, name = aim_in(payload)
    row = MigrationJob.objects.select_related("user").get(id=job.id)
    try:
        restore = RestoreFlags.from_dict(flags.get("restore", {}))
        dump = dump_flags(flags.get("dump", {}), staged=flags.get("staged") is True)
        database, source = _end(job, payload, row, "source")
        _, target = _end(job, payload, row, "target")
    except (PgToolsError, CannotDecrypt) as error:
        raise JobFailed(str(error)) from error
    if problems := flags_problems(restore, mode, staged=flags.get("staged") is True):
        raise JobFailed(" ".join(problems))
    return Order(source, target, name, mode, dump, restore, flags.get("staged") is True, database, row)


def _end(job: Job, payload: dict[str, Any], row: MigrationJob, side: str) -> tuple[Database | None, Conninfo]:
    """A registered database, or the URL that was given, which is sealed in the history row."""
    sealed = getattr(row, f"{side}_sealed_url")
    if sealed:
        return None, parse(unseal(sealed, f"The URL of the {side}"), owner=row.user)
    wanted = uuid_in(payload, f"{side}_database_id")
    found = Database.objects.select_related("user").filter(id=wanted, user_id=job.user_id).first()
    if found is None:
        name = payload.get(f"{side}_database_name")
        raise JobFailed(
            f"The {side} {name!r} is not registered any more (id {wanted}). Add it again, or give its URL."
        )
    return found, conninfo_for(found)
