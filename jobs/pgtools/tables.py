"""The tables a dump will read and how large they are, and the patterns that match nothing."""

from __future__ import annotations

from .asking import Session, asking
from .errors import QueryFailed, UnmatchedPattern
from .flags import DumpFlags
from .progress import LARGE_OBJECTS
from .selection import Condition, extension, schema, table, with_rows

FROM = "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
SIZE = "pg_catalog.pg_table_size(c.oid)"
# Measuring a file needs a share lock on its table. This estimate of the last VACUUM or ANALYZE does not.
ESTIMATE = """pg_catalog.current_setting('block_size')::bigint * (GREATEST(c.relpages, 0) + COALESCE(
    (SELECT GREATEST(t.relpages, 0) FROM pg_catalog.pg_class t WHERE t.oid = c.reltoastrelid), 0))"""
LARGE_OBJECT_SIZE = "SELECT pg_catalog.pg_table_size('pg_catalog.pg_largeobject')"
PATTERN_FIELDS = (
    ("schemas", "schema"),
    ("tables", "table"),
    ("extensions", "extension"),
    ("exclude_schemas", "schema"),
    ("exclude_tables", "table"),
    ("exclude_table_data", "table"),
    ("exclude_extensions", "extension"),
)
KINDS = "'r', 'p', 'v', 'm', 'f', 'S'"


def tables(conn: Session, flags: DumpFlags) -> dict[str, int]:
    """Bytes (heap and TOAST) of each table whose rows would be dumped, by "schema.table" as pg_dump names it.

    Large objects, when they would be dumped, are one entry under `progress.LARGE_OBJECTS`. Where a table is
    locked exclusively all sizes are estimates. Raises QueryFailed.
    """
    try:
        return _measure(conn, flags, SIZE)
    except QueryFailed:
        return _measure(conn, flags, ESTIMATE)


def _measure(conn: Session, flags: DumpFlags, size: str) -> dict[str, int]:
    where, values = with_rows(flags)
    query = f"SELECT n.nspname || '.' || c.relname, {size} {FROM} WHERE c.relkind = 'r' AND {where}"
    with asking(conn, lock_seconds=2):
        found = {name: int(bytes_ or 0) for name, bytes_ in conn.execute(query, values)}
        if flags.dumps_large_objects():
            row = conn.execute(LARGE_OBJECT_SIZE).fetchone()
            if row is not None and row[0]:
                found[LARGE_OBJECTS] = int(row[0])
    return found


def unmatched(conn: Session, flags: DumpFlags) -> list[tuple[str, str]]:
    """(field, pattern) for each pattern that matches nothing. Raises QueryFailed.

    pg_dump overlooks those of exclude_… in silence: a misspelt one dumps what was meant to stay out.
    """
    with asking(conn):
        return [
            (name, pattern)
            for name, kind in PATTERN_FIELDS
            for pattern in getattr(flags, name)
            if conn.execute(*_exists(kind, pattern)).fetchone() is None
        ]


def require_matches(conn: Session, flags: DumpFlags) -> list[str]:
    """Raises UnmatchedPattern when something to be dumped is not there.

    Returns a warning for each exclusion that excludes nothing.
    """
    missing = unmatched(conn, flags)
    asked = [f"{name} {pattern!r}" for name, pattern in missing if not name.startswith("exclude")]
    if asked:
        raise UnmatchedPattern(
            f'In database "{conn.info.dbname}" nothing matches {", ".join(asked)}. '
            "Correct the pattern; names with upper-case letters need double quotes in it."
        )
    return [f"{name} {pattern!r} matches nothing, so it left nothing out." for name, pattern in missing]


def _exists(kind: str, pattern: str) -> Condition:
    sources = {
        "extension": (extension, "FROM pg_catalog.pg_extension e WHERE"),
        "schema": (schema, "FROM pg_catalog.pg_namespace n WHERE"),
        "table": (table, f"{FROM} WHERE c.relkind IN ({KINDS}) AND"),
    }
    condition, source = sources[kind]
    where, values = condition(pattern)
    return f"SELECT 1 {source} {where}", values
