"""A job that comes again: what may an earlier claim of it have done to the target?"""

from __future__ import annotations

from jobs.models.history import WritingRow
from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.target import TargetFacts
from jobs.processors.at_target.lock import Hold
from jobs.processors.at_target.verification import missing_relations
from jobs.processors.base import JobFailed, Outcome
from jobs.processors.plan import Plan


def committed_before(
    hold: Hold, row: WritingRow, contents: Contents, facts: TargetFacts, flags: RestoreFlags, plan: Plan
) -> Outcome | None:
    """An empty database was being filled in one transaction, and is not empty any more: it was committed,
    and only the verdict got lost. None: it is not so."""
    if row.touched_at is None or plan.beside or row.mode != "empty" or facts.empty or contents.toc is None:
        return None
    if hold.inside is None or missing_relations(hold.inside, contents.toc, flags, row.mode):
        return None
    warning = (
        "The worker was ended right after the restore was committed; another one found everything there. "
        "If the first queries are slow, run ANALYZE."
    )
    return Outcome({"warnings": [warning]})


def require_repeatable(
    row: WritingRow, contents: Contents, facts: TargetFacts, flags: RestoreFlags, plan: Plan
) -> None:
    """Raises `JobFailed` where doing it twice would not give what doing it once gives."""
    if row.touched_at is None or plan.beside or (flags.clean and flags.if_exists):
        return
    if row.mode == "empty" and (facts.empty or contents.toc is not None):
        return  # begin anew, or be told by the pre-flight that it holds something else
    state = (
        "its transaction has been committed as a whole or not at all"
        if plan.single_transaction
        else "the target holds all of it or a part"
    )
    raise JobFailed(
        f"The worker was ended while it wrote into the target ({row.touched_at:%Y-%m-%d %H:%M} UTC): "
        f"{state}. Restoring a second time could double rows, so it was not tried. Look at the target, "
        "then re-run this job if it is needed."
    )
