"""What the login may not read of what a dump would need."""

from __future__ import annotations

from typing import Any

from .asking import Session, asking
from .flags import DumpFlags
from .selection import Condition, relations, with_rows

FROM = "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
NAME = "pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)"
REACHABLE = "pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
# has_largeobject_privilege came with 18.
LARGE_OBJECTS = """
    SELECT count(*) FROM pg_catalog.pg_largeobject_metadata m
    WHERE NOT pg_catalog.pg_has_role(m.lomowner, 'USAGE')
    AND NOT pg_catalog.current_setting('lo_compat_privileges')::bool
    AND NOT EXISTS (
        SELECT 1 FROM pg_catalog.aclexplode(m.lomacl) a WHERE a.privilege_type = 'SELECT'
        AND CASE WHEN a.grantee = 0 THEN true ELSE pg_catalog.pg_has_role(a.grantee, 'USAGE') END
    )"""
SUBSCRIPTIONS = """
    SELECT count(*) FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid
    WHERE d.datname = pg_catalog.current_database()"""
SUPERUSER = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
NAMED_AT_MOST = 20


def missing_privileges(conn: Session, flags: DumpFlags) -> list[str]:
    """What the dump would fail at or leave out, one phrase each, e.g. "SELECT on table public.orders".

    Empty when nothing is missing. pg_dump locks every table it dumps, which takes SELECT even when only the
    schema is dumped. At most 20 names of a kind, then a count. Raises QueryFailed.
    """
    with asking(conn):
        if _value(conn, SUPERUSER):
            return []
        found = _named(conn, "USAGE on schema {}", _schemas(flags))
        found += _named(conn, "SELECT on table {}", _tables(flags))
        found += _named(conn, "SELECT on sequence {}", _sequences(flags))
        if not flags.enable_row_security:
            found += _named(conn, "BYPASSRLS or ownership of table {}, which has row security", _rows(flags))
        if flags.dumps_large_objects() and (count := _value(conn, LARGE_OBJECTS)):
            found.append(f"SELECT on {count} large objects")
        if not flags.no_subscriptions and (count := _value(conn, SUBSCRIPTIONS)):
            found.append(f"superuser, for {count} subscriptions that are left out otherwise")
    return found


def _schemas(flags: DumpFlags) -> Condition:
    where, values = relations(flags)
    query = f"SELECT DISTINCT pg_catalog.quote_ident(n.nspname) {FROM} WHERE c.relkind IN ('r', 'p', 'S')"
    return f"{query} AND NOT {REACHABLE} AND {where} ORDER BY 1", values


def _tables(flags: DumpFlags) -> Condition:
    where, values = relations(flags)
    denied = f"{REACHABLE} AND NOT pg_catalog.has_table_privilege(c.oid, 'SELECT')"
    return f"SELECT {NAME} {FROM} WHERE c.relkind IN ('r', 'p') AND {denied} AND {where} ORDER BY 1", values


def _sequences(flags: DumpFlags) -> Condition:
    where, values = with_rows(flags)
    denied = f"{REACHABLE} AND NOT pg_catalog.has_sequence_privilege(c.oid, 'SELECT')"
    # The planner may test rows in any order, and the privilege of a sequence asked of a table is an error.
    is_denied = f"CASE WHEN c.relkind = 'S' THEN {denied} ELSE false END"
    return f"SELECT {NAME} {FROM} WHERE {is_denied} AND {where} ORDER BY 1", values


def _rows(flags: DumpFlags) -> Condition:
    where, values = with_rows(flags)
    hidden = "c.relkind = 'r' AND pg_catalog.row_security_active(c.oid)"
    return f"SELECT {NAME} {FROM} WHERE {hidden} AND {where} ORDER BY 1", values


def _named(conn: Session, phrase: str, query: Condition) -> list[str]:
    names = [name for (name,) in conn.execute(*query)]
    found = [phrase.format(name) for name in names[:NAMED_AT_MOST]]
    if len(names) > NAMED_AT_MOST:
        found.append(phrase.format(f"… and {len(names) - NAMED_AT_MOST} more"))
    return found


def _value(conn: Session, query: str) -> Any:
    row = conn.execute(query).fetchone()
    return row[0] if row else None
