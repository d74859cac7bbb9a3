"""The restore processor: one artifact into one database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jobs import scratch
from jobs.crypto import CannotDecrypt
from jobs.models import BackupJob, Database, RestoreJob, Upload
from jobs.pgtools.archive.codec import decompressed
from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import PgToolsError
from jobs.pgtools.restore_flags import RestoreFlags, mode_problems
from jobs.processors import copies
from jobs.processors import stored as artifacts
from jobs.processors.at_target import properties
from jobs.processors.at_target.again import committed_before, require_repeatable
from jobs.processors.at_target.examination import Wanted, examine, prepare
from jobs.processors.at_target.landing import Landing, Wish
from jobs.processors.at_target.lock import Hold, held
from jobs.processors.at_target.writing import Fill, resumed, untouched, written
from jobs.processors.base import JobFailed, Outcome
from jobs.processors.control import Control
from jobs.processors.explained import explained
from jobs.processors.load import Load
from jobs.processors.payload import aim_in, uuid_in
from jobs.processors.progress import reporting
from jobs.processors.staging import stage
from jobs.processors.stored import Changed, Checked, Stored
from jobs.queue.rows import Job
from jobs.storage.base import StoreError
from jobs.storage.local import LocalStore
from jobs.targets import conninfo_for


@dataclass(frozen=True)
class Order:
    """What a payload asks for, looked up; nothing in it is taken on trust."""

    conninfo: Conninfo
    target_name: str
    mode: str
    flags: RestoreFlags
    backup: BackupJob | None
    upload: Upload | None
    row: RestoreJob

    def open(self) -> list[Stored]:
        """What to restore from: one, and others to fall back on."""
        if self.backup is not None:
            return artifacts.all_of(self.backup)
        assert self.upload is not None  # noqa: S101  _order sees to it
        return [artifacts.of_upload(self.upload)]


class RestoreProcessor:
    @contextmanager
    def work(self, job: Job, control: Control) -> Iterator[Outcome]:
        order = control.patiently(partial(_order, job))
        with (
            explained(control, order.conninfo.secrets),
            scratch.folder(f"{job.queue}-{job.id.hex[:8]}") as folder,
            held(order.conninfo, order.target_name, folder, job.id, job.created_at, control) as hold,
        ):
            scratch.sweep_orphans()
            outcome = resumed(hold, order.row, order.mode)
            if outcome is not None:
                yield outcome
                return
            with _restored(job, order, hold, folder, control) as done:
                yield done


@contextmanager
def _restored(job: Job, order: Order, hold: Hold, folder: Path, control: Control) -> Iterator[Outcome]:
    with untouched(order.row, control):
        found = control.patiently(order.open)
        contents, found, passed_over = _readable(found, control)
        control.check()
    stored = found[0]
    wanted = wanted_of(stored, contents, order.flags, order.mode)
    if len(found) > 1 and stored.has_globals:
        wanted = replace(wanted, globals_sql=partial(artifacts.globals_of, found))
    seen = examine(hold, wanted, folder, control)
    earlier = committed_before(hold, order.row, contents, seen.facts, seen.flags, seen.plan)
    if earlier is not None:
        yield earlier
        return
    require_repeatable(order.row, contents, seen.facts, seen.flags, seen.plan)
    prepare(hold, seen, wanted, folder)
    load = Load(contents, seen.flags, order.mode, seen.plan, hold, control, stored.size)
    load.warnings = seen.warnings + passed_over
    load.list_file = seen.list_file
    wish = Wish(
        order.mode,
        seen.plan.beside,
        seen.plan.single_transaction,
        seen.flags.keep_days,
        properties.of_source(stored.database, contents),
        properties.owner_of_source(stored.database, contents, seen.flags),
        stored.database.get("settings") or {},
    )
    with reporting(job, control, load.snapshot):
        with untouched(order.row, control):
            fill = _ready(found, load, folder, control)
        with written(job, hold, wish, load, fill, control) as outcome:
            yield outcome


def wanted_of(stored: Stored, contents: Contents, flags: RestoreFlags, mode: str) -> Wanted:
    return Wanted(
        contents,
        flags,
        mode,
        stored.size,
        linkable=isinstance(stored.store, LocalStore),
        globals_sql=stored.globals_sql if stored.has_globals else None,
        source_major=_major(stored.manifest),
    )


def _readable(found: list[Stored], control: Control) -> tuple[Contents, list[Stored], list[str]]:
    """What is in it, that copy and those after it, and a warning if it is not the first one."""

    def look() -> tuple[int, Contents]:
        stop = control.stopped
        return artifacts.first_that_serves(found, lambda stored: stored.contents(stop=stop), stop=stop)

    place, contents = control.interruptibly(look)
    names = ", ".join(stored.store.name for stored in found[:place])
    warning = f"Restored from {found[place].store.name}: the copy in {names} cannot be read."
    return contents, found[place:], [warning] if place else []


def _ready(found: list[Stored], load: Load, folder: Path, control: Control) -> Fill:
    """Staged now, so that the target is touched only once all of the artifact is known to be whole; or to be
    streamed, and compared with the record before the commit or the swap."""
    if not load.plan.staged:
        checked = Checked(found[0], control.stopped)

        def whole() -> None:
            with _marking(found[0], control):
                checked.require_whole()

        def stream(place: Landing) -> None:
            chunks = decompressed(load.counted(checked), load.contents.codec)
            load.from_stream(place.conninfo, chunks, whole)

        return stream
    path = _staged(found, load, folder, control)

    def restore(place: Landing) -> None:
        load.from_staged(place.conninfo, path)

    return restore


def _staged(found: list[Stored], load: Load, folder: Path, control: Control) -> Path:
    """From the first copy that is whole."""
    for number, stored in enumerate(found):
        place = folder / f"copy-{number}"
        place.mkdir()
        try:
            with _marking(stored, control):
                path = stage(stored, load, place, Checked(stored, control.stopped))
        except (StoreError, PgToolsError) as error:
            control.check()
            if number == len(found) - 1:
                raise
            load.warnings.append(f"Another copy was taken: {error}")
            load.restart_counting()
            shutil.rmtree(place)
        else:
            if number:
                _require_same(stored, load, control)
            return path
    raise JobFailed("There is nothing to restore from.")


def _require_same(stored: Stored, load: Load, control: Control) -> None:
    """What was planned went by what another copy said."""
    if stored.contents(stop=control.stopped) != load.contents:
        raise JobFailed("A copy of the backup is damaged; another one is whole. Run the restore again.")


@contextmanager
def _marking(stored: Stored, control: Control) -> Iterator[None]:
    """Nobody is to rely on a copy that turned out to be damaged."""
    try:
        yield
    except Changed as error:
        copy, said = stored.copy, str(error)
        if copy is not None:
            control.patiently(lambda: copies.mark_damaged(copy.id, said))
        raise


def _major(manifest: dict[str, Any]) -> int | None:
    first = str(manifest.get("server_version", "")).partition(".")[0]
    return int(first) if first.isdecimal() else None


# What is asked -----------------------------------------------------------------------------------


def _order(job: Job) -> Order:
    """Raises `JobFailed` for a payload that is not the expected shape or names what is not there."""
    payload = job.payload
    if not isinstance(payload, dict) or not isinstance(payload.get("flags"), dict):
        raise JobFailed(
            "The job's payload is not of the expected shape (an object with database_id and flags)."
        )
    mode, name = aim_in(payload)
    try:
        flags = RestoreFlags.from_dict(payload["flags"])
        conninfo = conninfo_for(_database(job, payload))
    except (PgToolsError, CannotDecrypt) as error:
        raise JobFailed(str(error)) from error
    if problems := mode_problems(flags, mode, plain=True):
        raise JobFailed(" ".join(problems))
    return Order(conninfo, name, mode, flags, *_source(job, payload), RestoreJob.objects.get(id=job.id))


def _database(job: Job, payload: dict[str, Any]) -> Database:
    wanted = uuid_in(payload, "database_id")
    found = Database.objects.select_related("user").filter(id=wanted, user_id=job.user_id).first()
    if found is None:
        name = payload.get("database_name")
        raise JobFailed(
            f"The database {name!r} is not registered any more (id {wanted}). Add it again to restore into "
            "it."
        )
    return found


def _source(job: Job, payload: dict[str, Any]) -> tuple[BackupJob | None, Upload | None]:
    if payload.get("backup_id") is not None:
        wanted = uuid_in(payload, "backup_id")
        backup = BackupJob.objects.filter(id=wanted, user_id=job.user_id, status="completed").first()
        if backup is None:
            raise JobFailed(f"The backup {wanted} does not exist any more, or is not complete.")
        return backup, None
    wanted = uuid_in(payload, "upload_id")
    upload = Upload.objects.select_related("storage").filter(id=wanted, user_id=job.user_id).first()
    if upload is None:
        raise JobFailed(
            f"The upload {wanted} does not exist any more: uploads are kept for a day. Send it again."
        )
    return None, upload
