"""A database with a little of everything that PostgreSQL keeps, and how to tell whether two are alike.

`make` builds one; `rows` and `definitions` describe any database so that == compares source and copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.servers import SUPERUSER, TestServer

FOLDER = Path(__file__).parent
READER = "sample reader"
SEARCH_PATH = '"select", public'
SETTINGS = {"DateStyle": "German", "work_mem": "7MB", "application_name": 'it\'s "quoted", a = b\\c'}

DDL = (FOLDER / "sample.sql").read_text(encoding="utf-8")

RELATIONS = """
    SELECT n.nspname, c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm', 'S') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')"""
DEFINITIONS = (FOLDER / "sample_definitions.sql").read_text(encoding="utf-8")


def _acl(column: str, kind: str, owner: str) -> str:
    """Privileges in one order, the default ones spelt out: pg_dump leaves out what says nothing new."""
    items = f"unnest(COALESCE({column}, acldefault({kind}, {owner})))"
    return f"(SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM {items} AS a)"


ACLS = {
    "relacl": _acl("relacl", """CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char\"""", "relowner"),
    "proacl": _acl("proacl", "'f'", "proowner"),
    "nspacl": _acl("nspacl", "'n'", "nspowner"),
    "lomacl": _acl("lomacl", "'L'", "lomowner"),
}


def make(server: TestServer, name: str, statements: str = DDL) -> str:
    """A new database of the application role's, filled; its URL. The server gets the role READER too."""
    url = server.create_database(name)
    with psycopg.connect(server.superuser_url(name), autocommit=True) as session:
        session.execute(
            """DO $$ BEGIN CREATE ROLE "sample reader" NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL;
            WHEN unique_violation THEN NULL; END $$"""
        )
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(statements)
        session.execute(
            sql.SQL(f"ALTER DATABASE {{}} SET search_path = {SEARCH_PATH}").format(sql.Identifier(name))
        )
        for setting, value in SETTINGS.items():
            session.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(name), sql.Identifier(setting), sql.Literal(value)
                )
            )
    return url


def rows(server: TestServer, name: str) -> dict[str, tuple[Any, ...]]:
    """Of every table: the number of rows and a hash of all of them. Of every sequence its state, of every
    large object its hash."""
    with _session(server, name) as session:
        found = {}
        for schema, relation, kind in session.execute(RELATIONS).fetchall():
            table = sql.Identifier(schema, relation)
            found[table.as_string(session)] = session.execute(_content(kind).format(table)).fetchone() or ()
        large = session.execute("SELECT oid, md5(lo_get(oid)) FROM pg_largeobject_metadata").fetchall()
        return found | {f"large object {oid}": (digest,) for oid, digest in large}


def definitions(server: TestServer, name: str) -> dict[tuple[str, str], str | None]:
    """(kind, name) -> what the catalogue says of it."""
    with _session(server, name) as session:
        return {
            (kind, of): text for kind, of, text in session.execute(DEFINITIONS.format_map(ACLS)).fetchall()
        }


def _content(kind: str) -> sql.SQL:
    if kind == "S":
        return sql.SQL("SELECT last_value, is_called FROM {}")
    return sql.SQL(
        """SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text COLLATE "C")) FROM {} AS t"""
    )


def _session(server: TestServer, name: str) -> psycopg.Connection[Any]:
    """As superuser, whom no row security stops, with the settings under which texts are comparable."""
    session = psycopg.connect(server.url(name, SUPERUSER), autocommit=True)
    session.execute("SET datestyle = ISO; SET search_path = ''; SET bytea_output = hex; SET timezone = UTC")
    session.execute("SET search_path = pg_catalog")
    return session
