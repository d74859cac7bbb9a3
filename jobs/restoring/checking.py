"""The pre-flight, for people: what a restore or migration would meet, before anything runs."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psycopg
from django.contrib.auth.models import User

from jobs import scratch
from jobs.models import BackupJob, Database, Upload
from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, QueryFailed
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.hints import login_message
from jobs.pgtools.limit import Limit
from jobs.pgtools.mask import mask
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restore_options import MODES
from jobs.pgtools.target import TargetFacts
from jobs.processors import stored as artifacts
from jobs.processors.at_target import sessions
from jobs.processors.at_target.examination import Examined, Wanted, judge
from jobs.processors.at_target.sameness import is_same
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.processors.migration import dump_flags
from jobs.processors.migration import wanted_of as wanted_for_migration
from jobs.processors.pipe import Pipe, newest_for
from jobs.processors.preflight import Finding, stops
from jobs.processors.restore import wanted_of
from jobs.processors.source import Source
from jobs.processors.source import examine as examine_source
from jobs.processors.stored import Stored
from jobs.restoring.ahead import ahead
from jobs.restoring.migrations import MigrationOrder, ends
from jobs.restoring.orders import RestoreOrder, require_visible
from jobs.services import ServiceError
from jobs.storage.base import Stop, never
from jobs.targets import conninfo_for
from jobs.waiting import LOGIN_SECONDS, LONGEST_SECONDS, awaited

PATIENCE_SECONDS = 5.0  # with a store that is away, while somebody waits
APPLICATION = "pgbr check"


@dataclass(frozen=True)
class Check:
    """What is known before anything runs. `suggested_mode` fits what the target is now."""

    findings: list[Finding]
    contents: Contents
    facts: TargetFacts
    suggested_mode: str
    host: str

    @property
    def stops(self) -> bool:
        return bool(stops(self.findings))


def check_restore(order: RestoreOrder, *, by: User) -> Check:
    """Log in to the target and look into the artifact; up to a minute. Changes nothing.

    An order with a mode of "" is judged by the mode that fits. Raises `InvalidFlags`, `NotFound`,
    `ServiceError`, `PgToolsError`, `StoreError`.
    """
    require_visible(order.database, by)
    source = order.backup or order.upload
    if source is None:
        raise ServiceError("Choose what to restore: a backup or an uploaded file.")
    flags = RestoreFlags.from_dict(order.flags)
    with awaited(by, "The check") as control, ExitStack() as stack:
        stored, contents = _opened(source, by, control.stopped)
        wanted = wanted_of(stored, contents, flags, order.mode)
        found = _check(conninfo_for(order.database), order.target_name, wanted, stack)
    return _with_those_ahead(found, order.database, order.target_name)


def check_migration(order: MigrationOrder, *, by: User) -> Check:
    """The same for a migration; asks the source for its definitions."""
    source_conninfo, target_conninfo = ends(order, by)
    given, restore_flags = (
        dump_flags(order.dump_flags, staged=order.staged),
        RestoreFlags.from_dict(order.restore_flags),
    )
    source_conninfo, target_conninfo = (
        end.impatient(LOGIN_SECONDS) for end in (source_conninfo, target_conninfo)
    )
    with awaited(by, "The check") as control, ExitStack() as stack:
        folder = stack.enter_context(scratch.folder("check"))
        # Under a name of its own, for it ends the sessions that have it: others' checks shall go on.
        name = f"{APPLICATION} {uuid.uuid4().hex[:8]}"
        source = examine_source(source_conninfo, given, folder, name, control)
        with ExitStack() as asking:  # over before the check counts who else is connected
            outside, inside = _enter(target_conninfo, order.target_name, folder, asking)
            session = outside or inside
            assert session is not None  # noqa: S101  one of the two, else it was raised
            if is_same(source, inside, folder):
                raise ServiceError("Source and target are the same database. Choose another target.")
            tube = _pipe(source, session, given, order.staged, folder, control)
        wanted = wanted_for_migration(tube, tube.outline(), restore_flags, order.mode)
        found = _check(target_conninfo, order.target_name, wanted, stack)
    return _with_those_ahead(found, order.target, order.target_name)


def contents_of(source: BackupJob | Upload, *, by: User, stop: Stop = never) -> Contents:
    """What is in it; of a compressed tar that may take reading it to its end. Raises `NotFound`,
    `ServiceError`, `PgToolsError`, `StoreError`, as soon as `stop()` is true too."""
    return _opened(source, by, stop)[1]


def suggested_mode(facts: TargetFacts) -> str:
    """A target that holds data is replaced, so that there is a way back."""
    if not facts.exists:
        return "new"
    return "empty" if facts.empty else "replace"


def _check(conninfo: Conninfo, name: str, wanted: Wanted, stack: ExitStack) -> Check:
    folder = stack.enter_context(scratch.folder("check"))
    conninfo = conninfo.impatient(LOGIN_SECONDS)
    outside, inside = _enter(conninfo, name, folder, stack)
    orders = outside or inside
    assert orders is not None  # noqa: S101  one of the two, else it was raised

    def judged(mode: str) -> Examined:
        return judge(conninfo, name, orders, inside, replace(wanted, mode=mode), folder)

    try:
        seen = judged(wanted.mode if wanted.mode in MODES else "replace")
        fitting = suggested_mode(seen.facts)
        if wanted.mode not in MODES and fitting != "replace":
            seen = judged(fitting)
    except psycopg.Error as error:
        reason = login_message(mask(str(error), conninfo.secrets))
        raise QueryFailed(f'Asking {conninfo.host_label} about "{name}" failed: {reason}') from None
    return Check(seen.findings, wanted.contents, seen.facts, fitting, conninfo.host_label)


def _with_those_ahead(found: Check, target: Database | str, name: str) -> Check:
    others = ahead(target, name) if isinstance(target, Database) else []
    return replace(found, findings=others + found.findings)


def _enter(
    conninfo: Conninfo, name: str, folder: Path, stack: ExitStack
) -> tuple[sessions.Session | None, sessions.Session | None]:
    """A session outside of the target and one in it, as far as there are any; at least one."""
    limit = stack.enter_context(Limit(LONGEST_SECONDS))
    outside = sessions.maintenance(conninfo, name, folder, APPLICATION, limit.watch)
    if outside is not None:
        stack.callback(outside.close)
    try:
        inside = sessions.direct(conninfo.replace_database(name), folder, APPLICATION, limit.watch)
    except ConnectionFailed:
        if outside is None:
            raise
        return outside, None
    stack.callback(inside.close)
    return outside, inside


def _pipe(
    source: Source,
    session: sessions.Session,
    flags: DumpFlags,
    staged: bool,
    folder: Path,
    control: Control,
) -> Pipe:
    tools = newest_for(source, session)
    return Pipe(replace(source, toolset=tools), flags, staged, folder, APPLICATION, control)


def _opened(source: BackupJob | Upload, by: User, stop: Stop) -> tuple[Stored, Contents]:
    """The first copy that can be read, and what is in it."""
    require_visible(source, by)
    try:
        if isinstance(source, BackupJob):
            found = artifacts.all_of(source, retry_seconds=PATIENCE_SECONDS)
        else:
            found = [artifacts.of_upload(source, retry_seconds=PATIENCE_SECONDS)]
        look = partial(Stored.contents, stop=stop)
        place, contents = artifacts.first_that_serves(found, look, stop=stop)
    except JobFailed as error:
        raise ServiceError(str(error)) from error
    return found[place], contents
