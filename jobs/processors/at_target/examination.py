"""What is known before anything is written: the target as it is, and whether the wish fits it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.pgtools.archive import patience
from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.archive.select import list_text
from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import NoClientTools
from jobs.pgtools.restore_client import choose_client
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restored import restored
from jobs.pgtools.target import TargetFacts, look
from jobs.pgtools.toolset import Toolset
from jobs.processors.at_target import roles
from jobs.processors.at_target.lock import Hold
from jobs.processors.at_target.protection import is_own, why_protected
from jobs.processors.at_target.sessions import Session
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.processors.plan import Plan, plan
from jobs.processors.preflight import Finding, findings, stops
from jobs.processors.source import toolsets
from jobs.scratch import RESERVE_BYTES

UNPACKED_RATIO = {"none": 1.05, "gzip": 6.0, "zstd": 6.0}  # of a compressed file, when it is unpacked to disk


@dataclass(frozen=True)
class Wanted:
    """What is to be restored and how. `size`: bytes of the artifact; `linkable`: it is a file of this
    machine that need not be copied; `streamed`: it never lies on a disk, and its list is known only once it
    comes; `globals_sql` gives the saved roles, None: there are none."""

    contents: Contents
    flags: RestoreFlags
    mode: str
    size: int
    linkable: bool = False
    streamed: bool = False
    globals_sql: Callable[[], bytes] | None = None
    source_major: int | None = None


@dataclass
class Examined:
    facts: TargetFacts
    findings: list[Finding]
    plan: Plan
    flags: RestoreFlags
    list_file: Path | None = None
    warnings: list[str] = field(default_factory=list)


def judge(
    conninfo: Conninfo, name: str, orders: Session, inside: Session | None, wanted: Wanted, scratch: Path
) -> Examined:
    """Asks the server, changes nothing. Reads our own database: a connection of it must be at hand."""
    facts = look(orders, inside, name)
    tools = toolsets()
    client = _client(wanted, facts, tools)
    free = shutil.disk_usage(scratch).free - RESERVE_BYTES
    needed = _needed(wanted)
    made = plan(
        wanted.contents,
        wanted.flags,
        wanted.mode,
        facts.major,
        client,
        room=needed <= free and not wanted.streamed,
    )
    reason = why_protected(conninfo, name, facts.system_identifier, inside, scratch)
    found = findings(
        wanted.contents,
        facts,
        wanted.flags,
        wanted.mode,
        tools,
        free_bytes=free if made.staged else None,
        needed_bytes=needed if made.staged else 0,
        has_globals=wanted.globals_sql is not None,
        source_major=wanted.source_major,
        protected=reason is not None,
        own=inside is not None and is_own(inside),
    )
    return Examined(facts, found, made, wanted.flags)


def examine(hold: Hold, wanted: Wanted, folder: Path, control: Control) -> Examined:
    """The same in the worker."""
    orders = hold.session or hold.inside_or_fail()
    with patience.until(control.stopped), hold.lines.asking():
        return control.patiently(lambda: judge(hold.conninfo, hold.name, orders, hold.inside, wanted, folder))


def prepare(hold: Hold, seen: Examined, wanted: Wanted, folder: Path) -> None:
    """Go on from there: create missing roles if that was asked for, and write down what is selected. Raises
    `JobFailed` with every reason against it."""
    if against := stops(seen.findings):
        raise JobFailed(" ".join(_in_words(finding) for finding in against))
    orders = hold.session or hold.inside_or_fail()
    seen.warnings += [_in_words(finding) for finding in seen.findings if finding.level == "warn"]
    if wanted.flags.missing_roles == "create" and wanted.globals_sql is not None:
        seen.warnings += roles.create_missing(
            orders, wanted.contents, seen.facts, wanted.flags, wanted.mode, wanted.globals_sql()
        )
    if not wanted.streamed:
        assumable = seen.facts.assumable
        seen.list_file = list_file(
            wanted.contents.toc, wanted.flags, wanted.mode, assumable, folder, seen.warnings
        )


def _client(wanted: Wanted, facts: TargetFacts, tools: Sequence[Toolset]) -> Toolset | None:
    toc = wanted.contents.toc
    if toc is None:
        return None
    try:
        return choose_client(toc.reader_major, facts.major, tools, toc.compression)
    except NoClientTools:
        return None  # the findings say so


def _needed(wanted: Wanted) -> int:
    """Bytes on disk that staging takes; only a guess where it is unpacked."""
    if wanted.linkable and wanted.contents.codec == "none" and wanted.contents.format != "directory":
        return 0
    return int(wanted.size * UNPACKED_RATIO[wanted.contents.codec])


def list_file(
    toc: Toc | None,
    flags: RestoreFlags,
    mode: str,
    assumable: frozenset[str],
    folder: Path,
    warnings: list[str],
) -> Path | None:
    """What of the archive is to be restored, for `pg_restore --use-list`; None: all of it. Raises `JobFailed`
    for a pattern that matches nothing."""
    if toc is None:
        return None
    chosen = restored(toc, flags, mode, assumable)
    if chosen.unmatched:
        raise JobFailed(
            f"Nothing in the archive matches {', '.join(chosen.unmatched)}. Names with upper-case letters "
            "need double quotes in a pattern."
        )
    if chosen.chosen is None:
        return None
    warnings += [one for one in chosen.missing if not any(one in said for said in warnings)]
    path = folder / "list"
    path.write_text(list_text(chosen.chosen), encoding="utf-8")
    return path


def _in_words(finding: Finding) -> str:
    return " ".join(
        f"{part.rstrip('.')}." for part in (finding.title, finding.detail, finding.remedy) if part
    )
