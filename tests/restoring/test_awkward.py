"""Databases, schemas, tables and roles whose names are anything but words."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from jobs.restoring import MigrationOrder, drop_kept, undo
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Restores, completed, databases, number, same, stray

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "é" * 31 + "x"  # 63 bytes, the most there can be
ROLES = ('role "with" quotes', "-dash", "Ünï cöde", "select", "100%s\\", LONG)
# Each is the target of one migration and the source of the next.
NAMES = ("select", "--help", "host=evil dbname=x", LONG)
REPLACED = "postgresql://Üpper 日本/%s %(x)s 100% \\ 'n' \"q\" $x$ `id`"
INSIDE = (*NAMES, REPLACED, "line\nbreak", "tab\ttab", "a.b", "--\n\\! id", "-T *", "Public", " ")


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    """A schema for each of INSIDE and in it a table, a sequence, an index, a view, a function and a comment
    of that name, all of them of awkward owners; rows, too."""
    server, name = servers.get(17), "-Awkward 'source' \"é\\"
    for role in ROLES:
        server.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    url = sample.make(server, name, "CREATE TABLE t (n int)")
    with psycopg.connect(server.superuser_url(name), autocommit=True) as session:
        for index, word in enumerate(INSIDE):
            role = ROLES[index % len(ROLES)]
            session.execute(_objects(word, role))
        session.execute(
            sql.SQL("ALTER ROLE {} IN DATABASE {} SET work_mem = '9MB'").format(
                sql.Identifier(ROLES[0]), sql.Identifier(name)
            )
        )
    yield Source(server, name, url)
    server.drop_database(name)
    for role in ROLES:
        server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def _objects(word: str, role: str) -> sql.Composed:
    name, literal, owner = sql.Identifier(word), sql.Literal(word), sql.Identifier(role)
    statements = """
        CREATE SCHEMA {name} AUTHORIZATION {owner};
        CREATE TABLE {name}.{name} (id serial, {name} text DEFAULT {literal},
            CONSTRAINT {name} CHECK (id > 0));
        INSERT INTO {name}.{name} ({name}) VALUES ({literal}), (NULL), ('\\.');
        CREATE INDEX {index} ON {name}.{name} ({name});
        CREATE SEQUENCE {name}.{sequence} OWNED BY {name}.{name}.{name};
        ALTER TABLE {name}.{name} OWNER TO {owner};
        CREATE VIEW {name}.{view} AS SELECT * FROM {name}.{name};
        CREATE FUNCTION {name}.{name}(int) RETURNS text LANGUAGE sql AS {body};
        ALTER FUNCTION {name}.{name}(int) OWNER TO {owner};
        COMMENT ON TABLE {name}.{name} IS {literal};
        GRANT SELECT ON {name}.{name} TO {reader}"""
    short = word[:25]
    return sql.SQL(statements).format(
        name=name,
        literal=literal,
        owner=owner,
        index=sql.Identifier(f"{short} i"),
        sequence=sql.Identifier(f"{short} s"),
        view=sql.Identifier(f"{short} v"),
        body=sql.Literal(f"SELECT {literal.as_string(None)}::text"),
        reader=sql.Identifier(sample.READER),
    )


def test_from_one_awkward_database_to_the_next(restores: Restores, source: Source) -> None:
    server, before = source.server, source.name
    for name in NAMES:
        target = restores.at(server, name, servers.SUPERUSER)
        staged = name.startswith("host=")
        order = MigrationOrder(server.superuser_url(before), target, "new", name, staged=staged)
        completed(restores.migrate(order))
        assert number(server, name, "SELECT current_database()") == name
        before = name
    same(server, source, before)
    assert settings(server, before) == settings(server, source.name)
    assert not stray(server)


@pytest.mark.parametrize(
    ("name", "flags"), [(LONG, {"format": "plain"}), (REPLACED, {})], ids=["longest", "oddest"]
)
def test_replaced_under_an_awkward_name_and_back(
    restores: Restores, source: Source, name: str, flags: dict[str, object]
) -> None:
    server = source.server
    backup = restores.backups.take(server.superuser_url(source.name), flags, name="awkward")
    restores.target(server, "CREATE TABLE old AS SELECT 1 AS n", name)
    at = restores.at(server, name, servers.SUPERUSER)
    row = completed(restores.take(at, backup, "replace", name))
    same(server, source, name)
    assert row.kept_name is not None
    assert len(row.kept_name.encode()) <= 63
    assert number(server, row.kept_name, "SELECT n FROM old") == 1
    undo(row, by=row.user)
    row.refresh_from_db()
    assert number(server, name, "SELECT n FROM old") == 1
    drop_kept(row, by=row.user)
    assert row.kept_name not in databases(server)


def settings(server: servers.TestServer, name: str) -> set[str]:
    """Setting by setting, with the role they are for."""
    with psycopg.connect(server.superuser_url(), autocommit=True) as session:
        found = session.execute(
            """SELECT COALESCE(setrole::regrole::text, ''), unnest(setconfig) FROM pg_db_role_setting
            WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = %s)""",
            [name],
        ).fetchall()
    return {f"{role}: {setting}" for role, setting in found}
