"""What a restore has to know of the server it goes to, and of the database there, before it touches them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, LiteralString

from psycopg.rows import dict_row

from .asking import Session, asking
from .errors import QueryFailed
from .server import system_identifier

# The lock table has room for max_locks_per_transaction for each backend, auxiliary ones included, and each
# prepared transaction (NLOCKENTS in lock.c); any one transaction may use all of it that is free.
SERVER = """
    SELECT pg_catalog.pg_backend_pid() AS pid,
        pg_catalog.current_setting('server_version_num')::int AS version_num,
        pg_catalog.current_setting('server_version') AS version,
        pg_catalog.pg_is_in_recovery() AS in_recovery,
        pg_catalog.current_setting('default_transaction_read_only')::bool AS read_only,
        r.rolname AS "user", r.rolsuper AS superuser,
        r.rolsuper OR r.rolcreatedb AS may_create_database, r.rolsuper OR r.rolcreaterole AS may_create_roles,
        pg_catalog.current_setting('max_locks_per_transaction')::bigint
            * (1 + pg_catalog.current_setting('max_connections')::int
            + pg_catalog.current_setting('max_prepared_transactions')::int
            + pg_catalog.current_setting('max_worker_processes')::int
            + pg_catalog.current_setting('max_wal_senders')::int
            + COALESCE(pg_catalog.current_setting('autovacuum_worker_slots', true),
                pg_catalog.current_setting('autovacuum_max_workers'))::int) AS lock_budget,
        ARRAY(SELECT o.rolname::text FROM pg_catalog.pg_roles o) AS roles,
        ARRAY(SELECT o.rolname::text FROM pg_catalog.pg_roles o
            WHERE pg_catalog.pg_has_role(o.oid, CASE
                WHEN pg_catalog.current_setting('server_version_num')::int < 160000 THEN 'MEMBER'
                ELSE 'SET' END)) AS assumable,
        ARRAY(SELECT s.spcname::text FROM pg_catalog.pg_tablespace s) AS tablespaces,
        ARRAY(SELECT e.name::text FROM pg_catalog.pg_available_extensions e) AS extensions,
        ARRAY(SELECT e.name::text FROM pg_catalog.pg_available_extensions e
            JOIN pg_catalog.pg_available_extension_versions v
                ON v.name = e.name AND v.version = e.default_version
            WHERE v.superuser AND NOT v.trusted AND NOT r.rolsuper) AS superuser_extensions
    FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""
# Most roles do not see what others' sessions are (backend_type), but whose they are.
DATABASE = """
    SELECT d.oid, pg_catalog.pg_get_userbyid(d.datdba)::text AS owner,
        pg_catalog.pg_encoding_to_char(d.encoding)::text AS encoding,
        pg_catalog.pg_has_role(d.datdba, 'USAGE') AS owns, s.sessions, s.may_end_sessions,
        (SELECT count(*) FROM pg_catalog.pg_prepared_xacts p WHERE p.database = d.datname) AS prepared
    FROM pg_catalog.pg_database d CROSS JOIN LATERAL (
        SELECT count(*) AS sessions, COALESCE(bool_and(pg_catalog.pg_has_role(a.usesysid, 'USAGE')
            OR pg_catalog.pg_has_role('pg_signal_backend', 'USAGE') AND NOT r.rolsuper), true)
            AS may_end_sessions
        FROM pg_catalog.pg_stat_activity a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.usesysid
        WHERE a.datid = d.oid AND a.usesysid IS NOT NULL AND a.pid <> ALL (%(ours)s)
        AND COALESCE(a.backend_type, 'client backend') IN ('client backend', 'walsender')
    ) AS s
    WHERE d.datname = %(name)s
"""
SIZE = "SELECT pg_catalog.pg_database_size(%(name)s::name) AS size_bytes"
# Users' own is what came after initdb, which has the numbers below 16384 to itself (transam.h), and does not
# belong to an extension. Types that come with a table or another type are not counted.
INSIDE = """
    WITH object AS (
        SELECT tableoid, oid, relnamespace AS place, relkind IN ('r', 'p') AS is_table
            FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
        UNION ALL SELECT tableoid, oid, typnamespace, false FROM pg_catalog.pg_type
            WHERE typtype IN ('d', 'e', 'r') OR typtype = 'b' AND typcategory <> 'A'
        UNION ALL SELECT tableoid, oid, pronamespace, false FROM pg_catalog.pg_proc
        UNION ALL SELECT tableoid, oid, oid, false FROM pg_catalog.pg_namespace WHERE nspname <> 'public'
        UNION ALL SELECT tableoid, oid, collnamespace, false FROM pg_catalog.pg_collation
        UNION ALL SELECT tableoid, oid, oprnamespace, false FROM pg_catalog.pg_operator
        UNION ALL SELECT tableoid, oid, cfgnamespace, false FROM pg_catalog.pg_ts_config
        UNION ALL SELECT tableoid, oid, dictnamespace, false FROM pg_catalog.pg_ts_dict
        UNION ALL SELECT tableoid, oid, 0, false FROM pg_catalog.pg_cast
        UNION ALL SELECT tableoid, oid, 0, false FROM pg_catalog.pg_event_trigger
        UNION ALL SELECT tableoid, oid, 0, false FROM pg_catalog.pg_foreign_data_wrapper
        UNION ALL SELECT tableoid, oid, 0, false FROM pg_catalog.pg_foreign_server
        UNION ALL SELECT tableoid, oid, 0, false FROM pg_catalog.pg_language
        UNION ALL SELECT tableoid, oid, 0, false FROM pg_catalog.pg_publication
    ), counted AS (
        SELECT count(*) AS objects, count(*) FILTER (WHERE o.is_table) AS tables FROM object o
        WHERE o.oid >= 16384 AND NOT EXISTS (
            SELECT 1 FROM pg_catalog.pg_depend d
            WHERE d.classid = o.tableoid AND d.objid = o.oid AND d.deptype = 'e'
        ) AND NOT EXISTS (
            SELECT 1 FROM pg_catalog.pg_namespace n WHERE n.oid = o.place AND n.nspname ~ '^pg_'
        )
    )
    SELECT pg_catalog.pg_backend_pid() AS pid, c.tables,
        c.objects + (SELECT count(*) FROM pg_catalog.pg_largeobject_metadata) AS objects,
        ARRAY(SELECT e.extname::text FROM pg_catalog.pg_extension e) AS installed,
        ARRAY(SELECT e.extname::text FROM pg_catalog.pg_extension e
            WHERE NOT pg_catalog.pg_has_role(e.extowner, 'USAGE')) AS foreign_extensions,
        pg_catalog.current_setting('default_transaction_read_only')::bool AS database_read_only,
        pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') AND COALESCE(
            (SELECT pg_catalog.has_schema_privilege(n.oid, 'CREATE') FROM pg_catalog.pg_namespace n
            WHERE n.nspname = 'public'), true) AS may_create
    FROM counted c
"""

# By the words of the annotations below: anybody can write a server.
TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int, "int | None": (int, type(None)), "bool": bool, "str": str, "frozenset[str]": frozenset,
}  # fmt: skip


@dataclass(frozen=True)
class TargetFacts:
    """A server and the database `name` on it, which need not exist, as the login `user` sees them.

    `system_identifier` is "" when the server does not tell, `size_bytes` None when it does not or there is no
    such database. `objects` counts everything that users made (relations, routines, types, schemas but
    public, large objects, …), extensions and what belongs to them left out: a database in which somebody
    prepared the extensions is still `empty`. Without a session inside, nothing is known of what is there, so
    it is not `empty`. `sessions` are others', `prepared` prepared transactions. `assumable` are the roles
    that may be given objects, `extensions` those that could be installed, `superuser_extensions` those of
    them that this login may not, `installed` what is in the database, `foreign_extensions` those of them
    that are not its own. `lock_budget` is how many locks the
    whole server can hold, as its settings promise. `read_only`: sessions at the server begin so;
    `database_read_only`: those in this database do.
    """

    name: str
    version_num: int
    version: str
    system_identifier: str
    in_recovery: bool
    read_only: bool
    user: str
    superuser: bool
    may_create_database: bool
    may_create_roles: bool
    lock_budget: int
    roles: frozenset[str]
    assumable: frozenset[str]
    tablespaces: frozenset[str]
    extensions: frozenset[str]
    superuser_extensions: frozenset[str]
    exists: bool = False
    oid: int | None = None
    owner: str = ""
    encoding: str = ""
    size_bytes: int | None = None
    owns: bool = False
    sessions: int = 0
    may_end_sessions: bool = True
    prepared: int = 0
    tables: int = 0
    objects: int = 0
    empty: bool = False
    may_create: bool = False
    database_read_only: bool = False
    installed: frozenset[str] = frozenset()
    foreign_extensions: frozenset[str] = frozenset()

    @property
    def entered(self) -> bool:
        """Whether it was seen from inside, so that it is known what it holds."""
        return self.empty or self.objects > 0

    @property
    def major(self) -> int:
        return self.version_num // 10000


def look(maintenance: Session, inside: Session | None, name: str) -> TargetFacts:
    """`maintenance` is a session in any database of the server, `inside` one in `name`, if that exists.

    Raises QueryFailed.
    """
    try:
        facts = TargetFacts(name=name, **_found(maintenance, inside, name))
        if all(isinstance(getattr(facts, field.name), TYPES[str(field.type)]) for field in fields(facts)):
            return facts
    except (TypeError, ValueError, LookupError, AttributeError):
        pass
    raise QueryFailed("The server answers as no PostgreSQL does. Check the address.")


def _found(maintenance: Session, inside: Session | None, name: str) -> dict[str, Any]:
    found = _row(maintenance, SERVER)
    content = _row(inside, INSIDE) if inside is not None else {}
    ours = [answer.pop("pid") for answer in (found, content) if answer]
    there = _row(maintenance, DATABASE, name=name, ours=ours)
    found["system_identifier"] = system_identifier(maintenance)
    if there:
        found |= there | {"exists": True, "size_bytes": _size(maintenance, name)}
    if there and content:
        found |= content | {"empty": content["objects"] == 0}
    return {key: _kept(value) for key, value in found.items()}


def _row(session: Session, query: LiteralString, **values: Any) -> dict[str, Any]:
    """The one row of the answer, or nothing."""
    with asking(session), session.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, values).fetchone() or {}


def _size(session: Session, name: str) -> int | None:
    try:
        return _row(session, SIZE, name=name).get("size_bytes")
    except QueryFailed:
        return None


def _kept(value: Any) -> Any:
    return frozenset(map(str, value)) if isinstance(value, list) else value
