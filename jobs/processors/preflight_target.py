"""Does the target, as it is now, fit the way to restore? And what becomes of what it holds?"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.target import TargetFacts
from jobs.processors.finding import Finding, Level, counted, quoted
from jobs.units import in_bytes

TEMPLATES = ("template0", "template1")
MEETING_PLACE = "postgres"


def about_server(facts: TargetFacts, mode: str, *, protected: bool, own: bool) -> Iterator[Finding]:
    if own:
        yield Finding(
            "stop",
            f'The database "{facts.name}" is the one that pgbr itself runs on',
            "Its users and jobs are in it, this restore among them.",
            "Restore into another one. To bring back pgbr itself, stop it and run pg_restore by hand.",
        )
    if protected:
        yield Finding(
            "stop",
            f'The database "{facts.name}" is protected',
            "Whoever registered it wants no restore and no migration to touch it.",
            "Restore into another database, or take the protection off on the database's page.",
        )
    if facts.name in TEMPLATES:
        yield Finding(
            "stop",
            f'New databases are copied from "{facts.name}", so nothing is restored there',
            "Whatever is in it would be in each of them.",
            "Restore into a database of another name.",
        )
    if facts.in_recovery:
        yield Finding(
            "stop",
            "The server is a standby: nothing can be written there",
            "It replays what its primary does.",
            "Register the primary's address, and restore there.",
        )
    elif facts.read_only or (facts.database_read_only and mode in ("empty", "existing")):
        yield Finding(
            "stop",
            "Sessions of this login are read-only",
            "default_transaction_read_only is on for the server, the role or the database.",
            f"Find out who set it, and why. Where it is the database's own setting: ALTER DATABASE "
            f"{quoted(facts.name)} RESET default_transaction_read_only;",
        )


def about_database(facts: TargetFacts, flags: RestoreFlags, mode: str, *, plain: bool) -> Iterator[Finding]:
    """`plain`: what comes is SQL, which decides itself what it drops."""
    if mode != "new" and not facts.exists:
        yield Finding(
            "stop",
            f'There is no database "{facts.name}" on the server',
            "PostgreSQL tells upper from lower case in names.",
            "Correct the name, or restore as “new” to have it created.",
        )
        return
    if facts.exists and not facts.entered:
        yield _closed(facts)
        return
    if mode == "new":
        yield from _new(facts)
    elif mode == "empty":
        yield from _empty(facts, flags)
    elif mode == "replace":
        yield from _replace(facts, flags)
    else:
        yield from _existing(facts, flags, plain=plain)
    yield from _role(facts, flags)


def _closed(facts: TargetFacts) -> Finding:
    """Nobody can tell what it holds, or that it is none of those that must stay as they are."""
    return Finding(
        "stop",
        f'The login "{facts.user}" cannot enter the database "{facts.name}", so it was not looked at',
        "It may not connect to it, or the database takes no connections now.",
        f"Let its owner run: GRANT CONNECT ON DATABASE {quoted(facts.name)} TO {quoted(facts.user)}; or try "
        "again once connections are free.",
    )


def _new(facts: TargetFacts) -> Iterator[Finding]:
    if facts.exists:
        yield Finding(
            "stop",
            f'There is a database "{facts.name}" already: {_content(facts)}',
            remedy="Choose another name, or restore as “replace”, which keeps the present one.",
        )
        return
    yield from _may_create_database(facts)
    yield Finding("ok", f'The database "{facts.name}" will be created', "It is dropped again on a failure.")


def _empty(facts: TargetFacts, flags: RestoreFlags) -> Iterator[Finding]:
    if not facts.empty:
        yield Finding(
            "stop",
            f'The database "{facts.name}" is not empty: {_content(facts)}',
            "What is there would be in the way of what the dump creates.",
            "Restore as “replace”, which keeps the present one under another name, or as “existing” to write "
            "into it.",
        )
        return
    if facts.name == "postgres":
        yield Finding(
            "warn",
            'The database "postgres" is where tools meet, not where applications keep their data',
            "Is it the one you mean? It is what a URL names when nothing else is at hand.",
            "Choose another name, and restore as “new”.",
        )
    if flags.in_one_transaction("empty"):
        yield from _may_create(facts, flags, "stop")
        yield Finding("ok", f'The database "{facts.name}" is empty', "A failure leaves it so.")
        return
    yield from _may_swap(facts)
    yield Finding(
        "ok",
        f'The database "{facts.name}" is empty: one restored beside it takes its place',
        "So that a failure leaves it empty, which without a single transaction it would not be.",
    )


def _may_swap(facts: TargetFacts) -> Iterator[Finding]:
    if facts.name == MEETING_PLACE:
        yield Finding(
            "stop",
            f'The database "{facts.name}" cannot give its name to another one',
            "pgbr's other jobs on this server hold their locks in it, and other tools expect it.",
            "Restore into a database of another name, or into this one as “existing”.",
        )
    yield from _may_create_database(facts)
    if not facts.owns:
        yield Finding(
            "stop",
            f'The login "{facts.user}" does not own the database "{facts.name}", so it may not rename it',
            f'Its owner is "{facts.owner}".',
            f"Connect as its owner, or let a superuser run: ALTER DATABASE {quoted(facts.name)} OWNER TO "
            f"{quoted(facts.user)};",
        )
    if facts.prepared:
        yield Finding(
            "stop",
            f"{counted(facts.prepared, 'prepared transaction')} in “{facts.name}”: it cannot be renamed",
            "They stay until somebody ends them, whatever happens to their sessions.",
            "Look at pg_prepared_xacts; COMMIT PREPARED or ROLLBACK PREPARED each of them, then check again.",
        )
    yield from _sessions(facts)


def _replace(facts: TargetFacts, flags: RestoreFlags) -> Iterator[Finding]:
    yield from _may_swap(facts)
    kept = f"for {counted(flags.keep_days, 'day')}" if flags.keep_days else "until you drop it"
    yield Finding(
        "ok",
        f'The database "{facts.name}" holds {_content(facts)}: it is kept as {facts.name}_before_… {kept}',
        "The dump is restored beside it first, and names are swapped when all is done; until then it stays "
        "in use. The server needs room for both. Undo swaps them back.",
    )


def _existing(facts: TargetFacts, flags: RestoreFlags, *, plain: bool) -> Iterator[Finding]:
    if not (plain or flags.restores_definitions or facts.tables):
        yield Finding(
            "stop",
            f'The database "{facts.name}" has no tables to load into',
            remedy="Restore the definitions too.",
        )
        return
    yield from _may_create(facts, flags, "warn")
    if facts.empty:
        yield Finding("ok", f'The database "{facts.name}" is empty')
        return
    fate = "the script decides what becomes of it" if plain else _fate(flags)
    yield Finding(
        "warn",
        f'The database "{facts.name}" holds {_content(facts)}, and {fate}',
        "A failure leaves it as it was."
        if flags.in_one_transaction("existing")
        else "Without a single transaction a failure leaves it half done.",
        "To be able to go back, restore as “replace”, or back it up first.",
    )


def _fate(flags: RestoreFlags) -> str:
    if flags.clean:
        return "each object that the dump holds too is dropped with its rows; nothing of that is kept"
    if not flags.restores_definitions:
        return "rows are added to those in its tables"
    return "new objects are added; one of the same name makes it fail"


def _may_create_database(facts: TargetFacts) -> Iterator[Finding]:
    if not facts.may_create_database:
        yield Finding(
            "stop",
            f'The login "{facts.user}" may not create databases',
            remedy=f"Let a superuser run: ALTER ROLE {quoted(facts.user)} CREATEDB; or have an empty "
            "database made for you, and restore as “empty” in a single transaction.",
        )


def _may_create(facts: TargetFacts, flags: RestoreFlags, level: Level) -> Iterator[Finding]:
    if facts.may_create or flags.role or not flags.restores_definitions:
        return
    yield Finding(
        level,
        f'The login "{facts.user}" may not create schemas and tables in "{facts.name}"',
        remedy=f'Let the owner "{facts.owner}" or a superuser run, in that database: '
        f"GRANT CREATE ON DATABASE {quoted(facts.name)} TO {quoted(facts.user)}; "
        f"GRANT CREATE ON SCHEMA public TO {quoted(facts.user)};",
    )


def _sessions(facts: TargetFacts) -> Iterator[Finding]:
    if not facts.sessions:
        return
    connected = f"{counted(facts.sessions, 'session')} in “{facts.name}”"
    if facts.may_end_sessions:
        yield Finding(
            "ok", f"{connected}: ended when the names are swapped", "They may connect again at once."
        )
        return
    yield Finding(
        "warn",
        f'{connected}, and the login "{facts.user}" may not end all of them',
        "Names cannot be swapped while they are connected: the restore would fail at its end and leave "
        "everything as it was.",
        "Stop what is connected before that, or let a superuser run: GRANT pg_signal_backend TO "
        f"{quoted(facts.user)}; (superusers' own sessions only a superuser ends).",
    )


def _role(facts: TargetFacts, flags: RestoreFlags) -> Iterator[Finding]:
    if flags.role and flags.role not in facts.assumable:
        exists = flags.role in facts.roles
        yield Finding(
            "stop",
            f'The login "{facts.user}" may not become the role "{flags.role}"'
            if exists
            else f'The server has no role "{flags.role}"',
            remedy=f"Let a superuser run: GRANT {quoted(flags.role)} TO {quoted(facts.user)};"
            if exists
            else "Correct the name in “role”, or leave it empty.",
        )
    if flags.disable_triggers and not facts.superuser:
        yield Finding(
            "stop",
            f'disable_triggers takes a superuser, and the login "{facts.user}" is none',
            remedy="Leave it out, or connect as a superuser.",
        )


def _content(facts: TargetFacts) -> str:
    """ "214 tables, 3.2 GB"; what there is else when there are no tables."""
    size = [in_bytes(facts.size_bytes)] if facts.size_bytes is not None else []
    if not facts.objects:
        return ", ".join(["nothing of its users'", *size] if facts.empty else size or ["an unknown content"])
    if facts.tables:
        return ", ".join([counted(facts.tables, "table"), *size])
    return ", ".join([f"no tables but {counted(facts.objects, 'other object')}", *size])
