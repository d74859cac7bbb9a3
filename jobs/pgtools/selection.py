"""Which relations pg_dump takes with given options: conditions over `c` (pg_class) and `n` (pg_namespace).

Follows pg_dump's selectDumpableTable and expand_table_name_patterns: named tables override schemas,
exclusions come last, a pattern without a schema means what the session's search_path shows.
"""

from __future__ import annotations

from collections.abc import Iterable

from .flags import DumpFlags
from .patterns import to_regexes

Condition = tuple[str, list[str]]

# pg_table_is_visible goes by the search_path, which our own questions do without; `asking` keeps what it was.
VISIBLE = """EXISTS (
        SELECT 1 FROM (SELECT pg_catalog.current_setting('pgbr.shown')::pg_catalog.name[] AS shown) AS s
        WHERE n.nspname = ANY (s.shown) AND NOT EXISTS (
            SELECT 1 FROM pg_catalog.pg_class o JOIN pg_catalog.pg_namespace m ON m.oid = o.relnamespace
            WHERE o.relname = c.relname
            AND pg_catalog.array_position(s.shown, m.nspname)
                < pg_catalog.array_position(s.shown, n.nspname)
        )
    )"""
USERS_OWN = """
    n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' AND c.relpersistence <> 't'
    AND NOT EXISTS (
        SELECT 1 FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
        AND d.refclassid = 'pg_catalog.pg_extension'::regclass
        AND NOT c.oid = ANY (COALESCE(e.extconfig, '{}'))
    )"""


def relations(flags: DumpFlags) -> Condition:
    """True for the relations that would be dumped, with or without their rows."""
    parts: list[Condition] = [(USERS_OWN, [])]
    if flags.tables:
        parts.append(_any(table(pattern) for pattern in flags.tables))
    elif flags.schemas:
        parts.append(_any(schema(pattern) for pattern in flags.schemas))
    parts += [_not(schema(pattern)) for pattern in flags.exclude_schemas]
    parts += [_not(table(pattern)) for pattern in flags.exclude_tables]
    return _all(parts)


def with_rows(flags: DumpFlags) -> Condition:
    """True for those whose rows would be dumped."""
    if not flags.dumps_rows():
        return "false", []
    parts = [relations(flags), *(_not(table(pattern)) for pattern in flags.exclude_table_data)]
    if flags.no_unlogged_table_data:
        parts.append(("c.relpersistence <> 'u'", []))
    return _all(parts)


def schema(pattern: str) -> Condition:
    return _matches("n.nspname", to_regexes(pattern)[-1])


def extension(pattern: str) -> Condition:
    """Over `e` (pg_extension)."""
    return _matches("e.extname", to_regexes(pattern)[-1])


def table(pattern: str) -> Condition:
    *of_schema, name = to_regexes(pattern)
    relation = _matches("c.relname", name)
    if of_schema:
        return _all([_matches("n.nspname", of_schema[-1]), relation])
    return _all([relation, (VISIBLE, [])])


def _matches(column: str, regex: str) -> Condition:
    return f"{column} OPERATOR(pg_catalog.~) %s COLLATE pg_catalog.default", [regex]


def _not(condition: Condition) -> Condition:
    return f"NOT ({condition[0]})", condition[1]


def _all(conditions: Iterable[Condition]) -> Condition:
    return _join(" AND ", conditions)


def _any(conditions: Iterable[Condition]) -> Condition:
    return _join(" OR ", conditions)


def _join(word: str, conditions: Iterable[Condition]) -> Condition:
    parts = list(conditions)
    text = word.join(f"({sql})" for sql, _ in parts)
    return text, [value for _, values in parts for value in values]
