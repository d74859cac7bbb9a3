"""From a held target to a restored one: make the place, fill it, look at it, give it its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from jobs.models.history import WritingRow
from jobs.pgtools.restore_hints import advised
from jobs.processors.at_target import properties, sessions
from jobs.processors.at_target.landing import (
    Landing,
    Undecided,
    Wish,
    already_landed,
    clear_leftovers,
    landing,
    remember,
    settle,
)
from jobs.processors.at_target.lock import Hold
from jobs.processors.at_target.verification import missing_relations
from jobs.processors.base import JobFailed, Outcome
from jobs.processors.control import Control, Stop, Stopped
from jobs.processors.explained import explained
from jobs.processors.finding import counted
from jobs.processors.load import Load
from jobs.queue.rows import Job

MOST_ERRORS_SHOWN = 10
AS_IT_WAS = "The target is as it was."
WAS_GONE = "was dropped or renamed meanwhile"

Fill = Callable[[Landing], None]


@contextmanager
def written(job: Job, hold: Hold, wish: Wish, load: Load, fill: Fill, control: Control) -> Iterator[Outcome]:
    """Have `load` done by `fill(place)`. Raises `JobFailed`, saying what is left in the target if it
    is not as it was."""
    hold.lines.begin_writing()
    clear_leftovers(hold, job.id)
    try:
        with explained(control, hold.conninfo.secrets), landing(hold, job, wish, control) as place:
            columns = _fill(hold, place, wish, load, fill, control)
    except Undecided as failure:
        raise JobFailed(str(failure), **_told(load)) from failure
    except JobFailed as failure:
        message = advised(str(failure))
        if _is_gone(hold, wish):
            message += "" if WAS_GONE in message else f" The target {WAS_GONE}."
        else:
            message = _with_damage(message, wish, load)
        raise JobFailed(message, **(_told(load) | failure.values)) from failure
    except Stopped as stopped:
        _if_rolled_back(job, wish, load, stopped, control)
        raise
    yield Outcome(columns | _told(load))


@contextmanager
def untouched(row: WritingRow, control: Control) -> Iterator[None]:
    """For what is done before the target is written to: a failure says so, unless an earlier claim of this
    job may have written already."""
    try:
        with explained(control):
            yield
    except JobFailed as failure:
        if row.touched_at is not None or row.mode == "new":
            raise
        raise JobFailed(f"{advised(str(failure))} {AS_IT_WAS}", **failure.values) from failure


def resumed(hold: Hold, row: WritingRow, mode: str) -> Outcome | None:
    """What an earlier claim of this job has done, if it got as far as making it the target; then there is
    nothing left to do but to say so."""
    if not already_landed(hold, row):
        return None
    clear_leftovers(hold, row.pk)
    columns = {"temporary_name": None} | settle(hold, mode, row.kept_name, row.kept_oid)
    warning = "The worker was ended right after the swap; the job was completed by another one."
    return Outcome(columns | {"warnings": [warning]})


def _fill(hold: Hold, place: Landing, wish: Wish, load: Load, fill: Fill, control: Control) -> dict[str, Any]:
    fill(place)
    hold.check()
    _require_complete(hold, place, load)
    if load.flags.analyze:
        _analyze(hold, place, load, control)
    # Last: the source's own limit of connections, for one, would keep us out.
    load.warnings += properties.finish(
        hold, place, load.contents, wish.settings, load.flags, wish.mode, control
    )
    load.phase = "changing names" if place.beside else "done"
    columns = place.land()
    load.warnings += place.warnings
    return columns


def _require_complete(hold: Hold, place: Landing, load: Load) -> None:
    """pg_restore said that all went well; every table, view and sequence of its list must be there, too."""
    if load.contents.toc is None or load.errors:
        return
    with hold.open(place.conninfo.dbname) as session:
        missing = missing_relations(session, load.contents.toc, load.flags, load.mode)
    if missing:
        raise JobFailed(
            f"pg_restore ended well, but {len(missing)} objects of the archive are not in the database, "
            f"such as {', '.join(missing[:3])}."
        )


def _analyze(hold: Hold, place: Landing, load: Load, control: Control) -> None:
    """A restore brings no statistics, without which the first queries may take any plan."""
    load.phase = "analyzing"
    try:
        with (
            hold.open(place.conninfo.dbname) as session,
            control.killing(lambda: sessions.cancel(session)),
            hold.killing(lambda: sessions.cancel(session)),
        ):
            session.execute("ANALYZE")
    except psycopg.Error as error:
        control.check()
        hold.check()
        load.warnings.append(f"ANALYZE failed, run it by hand: {str(error).strip().partition(chr(10))[0]}")


def _told(load: Load) -> dict[str, Any]:
    warnings = list(load.warnings)
    if load.errors:
        shown = load.first_errors[:MOST_ERRORS_SHOWN]
        warnings = [f"{counted(load.errors, 'statement')} failed. The first: " + "; ".join(shown), *warnings]
    return {"log": load.log, "warnings": warnings}


def _is_gone(hold: Hold, wish: Wish) -> bool:
    """Is the target not even as it was? False where nobody can tell."""
    try:
        return wish.mode != "new" and hold.session is not None and hold.oid(hold.name) is None
    except psycopg.Error:
        return False


def _with_damage(message: str, wish: Wish, load: Load) -> str:
    if wish.beside or load.phase == "reading":
        return f"{message} {AS_IT_WAS}" if wish.mode != "new" else message
    if wish.single_transaction:
        return (
            message
            if load.phase == "analyzing"
            else f"{message} All was rolled back: the target is as it was."
        )
    return f"{message} It was not restored in one transaction: the target holds a part of it by now."


def _if_rolled_back(job: Job, wish: Wish, load: Load, stopped: Stopped, control: Control) -> None:
    """Told to stop before anything could be committed, the job may begin anew wherever it was writing."""
    if stopped.why is Stop.SHUTDOWN and (wish.beside or (wish.single_transaction and not load.committing)):
        remember(job, control, touched_at=None)
