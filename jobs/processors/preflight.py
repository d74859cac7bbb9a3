"""Everything that can be known before a restore begins: shown when it is ordered, repeated by the worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.restore_flags import RestoreFlags, format_problems, mode_problems
from jobs.pgtools.restore_options import MODES
from jobs.pgtools.target import TargetFacts
from jobs.pgtools.toolset import Toolset
from jobs.processors.finding import Finding
from jobs.processors.preflight_archive import about_client, about_contents, about_version
from jobs.processors.preflight_target import about_database, about_server
from jobs.units import in_bytes

__all__ = ["Finding", "findings", "stops"]

ORDER = ("stop", "warn", "ok")


def findings(
    contents: Contents,
    facts: TargetFacts,
    flags: RestoreFlags,
    mode: str,
    toolsets: Sequence[Toolset],
    *,
    free_bytes: int | None,
    needed_bytes: int,
    has_globals: bool,
    source_major: int | None,
    protected: bool,
    own: bool = False,
) -> list[Finding]:
    """What stops the restore first, then what to think of, then what is well.

    `free_bytes` where the artifact would be staged (None: it is not), `needed_bytes` what that takes;
    `has_globals`: roles were saved with the backup; `source_major` of the server that was dumped, for when
    the dump does not say; `own`: the target is the database that pgbr runs on.
    """
    found = [
        *_about_options(contents, flags, mode),
        *about_server(facts, mode, protected=protected, own=own),
        *(about_database(facts, flags, mode, plain=contents.toc is None) if mode in MODES else ()),
        *about_version(source_major, contents, facts, flags),
        *about_client(contents, facts, flags, toolsets),
    ]
    if contents.toc is not None:
        found += about_contents(contents.toc, facts, flags, mode, has_globals=has_globals)
    found += _about_space(contents, free_bytes, needed_bytes)
    if flags.accept_errors:
        found.append(ERRORS_ACCEPTED)
    return sorted(found, key=lambda finding: ORDER.index(finding.level))


def stops(found: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.level == "stop"]


ERRORS_ACCEPTED = Finding(
    "warn",
    "Errors are accepted: what fails is missing from the database afterwards",
    "The restore counts as completed, and what failed is kept with it.",
)


def _about_options(contents: Contents, flags: RestoreFlags, mode: str) -> Iterator[Finding]:
    problems = mode_problems(flags, mode, plain=contents.format == "plain")
    for problem in [*problems, *format_problems(flags, contents)]:
        yield Finding("stop", problem.rstrip("."))


def _about_space(contents: Contents, free_bytes: int | None, needed_bytes: int) -> Iterator[Finding]:
    if free_bytes is None or not needed_bytes:
        return
    figures = f"needs {in_bytes(needed_bytes)}, and {in_bytes(free_bytes)} are free"
    if needed_bytes > free_bytes:
        instead = ", or restore all of it in one job, which streams" if contents.format == "custom" else ""
        yield Finding(
            "stop",
            f"Too little space on the worker's disk: the dump {figures}",
            "It is put there first, so that it can be checked, or read in parallel.",
            f"Free space in the scratch folder{instead}.",
        )
    else:
        yield Finding("ok", f"On the worker's disk the dump {figures}")
