"""Does the target have what the artifact needs: client, version, roles, extensions, tablespaces, locks?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.errors import InvalidFlags, NoClientTools
from jobs.pgtools.restore_client import choose_client, through_sql
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restored import foreign_public, locks_of, restored, roles_of
from jobs.pgtools.target import TargetFacts
from jobs.pgtools.toolset import Toolset
from jobs.processors.finding import Finding, Level, counted, listed, quoted

# Measured on 14 to 18 with stock settings: the lock table takes 1.6 times what it promises before it is full.
LOCKS_BEYOND_PROMISE = 1.5


def about_version(
    source_major: int | None, contents: Contents, facts: TargetFacts, flags: RestoreFlags
) -> Iterator[Finding]:
    """The dump's own word counts for more than what is known of its source."""
    major = contents.server_major or source_major
    if major is None:
        return
    if major <= facts.major:
        yield Finding("ok", f"From PostgreSQL {major} into PostgreSQL {facts.major}")
        return
    yield Finding(
        failing(flags),
        f"The dump is from PostgreSQL {major}, the server runs PostgreSQL {facts.major}, which is older",
        "It may hold what the older server does not know; a restore then lacks that, or fails.",
        f"Restore into a server of PostgreSQL {major} or newer, or tick “accept errors” to get what works.",
    )


def about_client(
    contents: Contents, facts: TargetFacts, flags: RestoreFlags, toolsets: Sequence[Toolset]
) -> Iterator[Finding]:
    words = contents.in_words()
    what = f"{words[0].upper()}{words[1:]}"
    toc = contents.toc
    if toc is None:
        needs = "Which roles, extensions and rights it needs shows when it runs."
        yield Finding("ok", f"{what}: pgbr sends its statements itself", needs)
        return
    try:
        client = choose_client(toc.reader_major, facts.major, toolsets, toc.compression)
    except NoClientTools as error:
        title, _, remedy = str(error).partition(". ")
        yield Finding("stop", title, what, remedy)
        return
    detour = "As SQL, without its setting transaction_timeout, which the server does not know; in one job."
    yield Finding(
        "ok",
        f"{what}: pg_restore {client.label} reads it",
        detour if through_sql(client, facts.major) else "",
    )
    for problem in flags.too_new_for(client):
        yield Finding("stop", problem.rstrip("."), remedy="Leave the option out.")


def about_contents(
    toc: Toc, facts: TargetFacts, flags: RestoreFlags, mode: str, *, has_globals: bool
) -> Iterator[Finding]:
    try:
        coming = restored(toc, flags, mode, facts.assumable)
    except InvalidFlags as error:
        yield Finding("stop", str(error).rstrip("."))
        return
    if coming.unmatched:
        yield Finding(
            "stop",
            f"Nothing in the dump matches {listed(coming.unmatched)}",
            remedy="Correct the pattern; names with upper-case letters need double quotes in it.",
        )
    yield from _lacking(coming.missing, facts, mode)
    yield from _foreign_public(toc, facts, flags)
    owners, named = roles_of(coming.toc, flags)
    yield from _missing_roles(owners | named, facts, flags, has_globals=has_globals)
    yield from _unassumable(owners, facts, flags)
    yield from _extensions(coming.toc, facts, flags, mode)
    yield from _tablespaces(coming.toc, facts, flags)
    yield from _encoding(toc, facts, mode)
    if flags.in_one_transaction(mode):
        yield from _locks(locks_of(coming.toc, flags, facts.major), facts)


def _lacking(missing: Sequence[str], facts: TargetFacts, mode: str) -> Iterator[Finding]:
    """In a database with data most of it will be there already, so one word is enough."""
    if missing and mode == "existing":
        yield Finding(
            "warn",
            "What is chosen needs more than is chosen",
            " ".join(missing),
            f'Make sure that the database "{facts.name}" has it.',
        )
    elif missing:
        yield from (Finding("warn", sentence.rstrip(".")) for sentence in missing)


def _foreign_public(toc: Toc, facts: TargetFacts, flags: RestoreFlags) -> Iterator[Finding]:
    for owner in foreign_public(toc, flags, facts.assumable).values():
        yield Finding(
            "ok",
            "The schema public keeps the owner that it has in the target",
            f'In the source it belonged to "{owner}", to whom the login "{facts.user}" may not give it.',
        )


def failing(flags: RestoreFlags) -> Level:
    """What a statement that fails for sure means."""
    return "warn" if flags.accept_errors else "stop"


def _missing_roles(
    needed: set[str], facts: TargetFacts, flags: RestoreFlags, *, has_globals: bool
) -> Iterator[Finding]:
    missing = needed - facts.roles
    if not missing:
        return
    lacks = f"The server lacks {counted(len(missing), 'role')}: {listed(missing)}"
    if flags.missing_roles == "create" and has_globals and facts.may_create_roles:
        yield Finding("ok", f"{lacks}; created from the saved globals")
        return
    if flags.missing_roles == "create":
        reason, remedy = (
            ("No globals were saved with this dump to create them from.", "")
            if not has_globals
            else (
                f'The login "{facts.user}" may not create roles.',
                f"Let a superuser run: ALTER ROLE {quoted(facts.user)} CREATEROLE; or ",
            )
        )
        yield Finding("stop", lacks, reason, f"{remedy}create the roles by hand, or restore without owners.")
        return
    create = "create them from the saved globals (missing_roles: create), or to " if has_globals else ""
    yield Finding(
        failing(flags),
        lacks,
        "Objects of the dump belong to them, or privileges and policies name them.",
        f"Under “Roles the server lacks” choose to {create}skip ownership (missing_roles: skip); or map all "
        "to one role (no_owner and no_privileges, with “role”)."
        + (" Policies name some; they need the roles all the same." if not flags.restores_privileges else ""),
    )


def _unassumable(owners: set[str], facts: TargetFacts, flags: RestoreFlags) -> Iterator[Finding]:
    # pg_database_owner is whoever owns the database in question, which is this login.
    others = (owners & facts.roles) - facts.assumable - {"pg_database_owner"}
    if others:
        yield Finding(
            failing(flags),
            f'The login "{facts.user}" may not give objects to {counted(len(others), "role")}: '
            f"{listed(others)}",
            "Objects of the dump belong to them, and only a member may hand them over.",
            "Restore without owners (no_owner), or connect as a superuser or as a member of these roles.",
        )


def _extensions(toc: Toc, facts: TargetFacts, flags: RestoreFlags, mode: str) -> Iterator[Finding]:
    needed = set(toc.extensions())
    there = facts.installed if mode in ("empty", "existing") else frozenset()
    if missing := needed - facts.extensions - there:
        yield Finding(
            failing(flags),
            f"The server lacks {counted(len(missing), 'extension')}: {listed(missing)}",
            "Types, functions and tables of the dump may need them.",
            "Install the package that brings it on the server (of managed servers: allow it in their "
            "settings), or restore only schemas and tables that do without.",
        )
    if refused := (needed & facts.superuser_extensions) - there:
        yield Finding(
            "warn",
            f"A superuser has to install {counted(len(refused), 'extension')}: {listed(refused)}",
            f'The login "{facts.user}" is none, so CREATE EXTENSION is likely to be refused.',
            "Let a superuser run CREATE EXTENSION in an empty database, and restore into that as “empty”.",
        )
    commented = {entry.name.removeprefix("EXTENSION ") for entry in toc.entries if entry.kind == "COMMENT"}
    if foreign := commented & needed & facts.foreign_extensions & there:
        yield Finding(
            failing(flags),
            f"The dump comments on {counted(len(foreign), 'extension')} of somebody else: {listed(foreign)}",
            f'They are in the database already, and the login "{facts.user}" does not own them.',
            "Tick no_extension_comments.",
        )


def _tablespaces(toc: Toc, facts: TargetFacts, flags: RestoreFlags) -> Iterator[Finding]:
    missing = set(toc.tablespaces()) - facts.tablespaces
    if missing and not flags.no_tablespaces:
        yield Finding(
            failing(flags),
            f"The server lacks {counted(len(missing), 'tablespace')}: {listed(missing)}",
            "Tables or indexes of the dump lie in them.",
            "Tick no_tablespaces to put everything into the default one, or create them first.",
        )


def _encoding(toc: Toc, facts: TargetFacts, mode: str) -> Iterator[Finding]:
    source = toc.database()
    if mode not in ("empty", "existing") or source is None or facts.encoding in ("UTF8", "", source.encoding):
        return
    yield Finding(
        "warn",
        f'The dump is {source.encoding}, the database "{facts.name}" {facts.encoding}',
        "Characters that it does not have make the restore fail.",
        "Restore as “new” or “replace”, which create the database with the encoding of the source.",
    )


def _locks(needed: int, facts: TargetFacts) -> Iterator[Finding]:
    if needed <= facts.lock_budget:
        return
    surely = needed > facts.lock_budget * LOCKS_BEYOND_PROMISE
    yield Finding(
        "stop" if surely else "warn",
        f"A single transaction would hold about {needed:,} locks; the server has room for "
        f"{facts.lock_budget:,}",
        "It fails with “out of shared memory” then, and changes nothing."
        if surely
        else "That may just do on a quiet server; if not, it fails with “out of shared memory” and changes "
        "nothing.",
        "Turn single_transaction off (parallel jobs do that too), or raise max_locks_per_transaction and "
        "restart the server.",
    )
