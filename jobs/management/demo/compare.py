"""Is the copy the same database? Rows by count and content, and everything else by its definition."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from jobs.management.demo.sample import Session

TABLES = """
SELECT n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2
"""
# Of all rows, whatever their order on disk.
CONTENT = """
SELECT count(*), md5(coalesce(string_agg(line, '' ORDER BY line COLLATE "C"), ''))
FROM (SELECT md5(t::text) AS line FROM {} AS t) AS lines
"""
DEFINITIONS = {
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname NOT IN ('pg_catalog') ORDER BY 1",
    "constraints": """
        SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid <> 0 AND connamespace NOT IN ('pg_catalog'::regnamespace,
            'information_schema'::regnamespace) ORDER BY 1""",
    "views": "SELECT viewname || definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
    "functions": "SELECT prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1",
    "sequences": "SELECT schemaname || sequencename || coalesce(last_value, 0) FROM pg_sequences ORDER BY 1",
    "large objects": "SELECT oid || md5(lo_get(oid)) FROM pg_largeobject_metadata ORDER BY 1",
}


@dataclass(frozen=True)
class TableLine:
    """One table on both sides; rows are -1 where it is missing."""

    name: str
    source_rows: int
    copy_rows: int
    same: bool


def tables(source: Session, copy: Session) -> list[TableLine]:
    """Every table and materialized view that either side has."""
    ours, theirs = _contents(source), _contents(copy)
    missing = (-1, "")
    return [
        TableLine(
            name,
            ours.get(name, missing)[0],
            theirs.get(name, missing)[0],
            ours.get(name) == theirs.get(name),
        )
        for name in sorted(ours.keys() | theirs.keys())
    ]


def definitions(source: Session, copy: Session) -> dict[str, tuple[int, bool]]:
    """Kind -> how many there are in the source, and whether the copy has the same."""
    found = {}
    for kind, query in DEFINITIONS.items():
        ours, theirs = (session.execute(query.encode()).fetchall() for session in (source, copy))
        found[kind] = (len(ours), ours == theirs)
    return found


def _contents(session: Session) -> dict[str, tuple[int, str]]:
    found = {}
    for schema, table in session.execute(TABLES).fetchall():
        name = sql.Identifier(str(schema), str(table))
        row = session.execute(sql.SQL(CONTENT).format(name)).fetchone()
        if row is not None:
            found[f"{schema}.{table}"] = (int(str(row[0])), str(row[1]))
    return found
