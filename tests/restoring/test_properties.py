"""What belongs to the database itself, whatever it does to those who want to enter."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from jobs.processors.at_target import creation
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Failing, Restores, completed, databases, stray

pytestmark = pytest.mark.django_db(transaction=True)

OWN = (
    "COMMENT ON DATABASE {} IS 'it''s \\ mine'",
    "REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC",
    "GRANT CONNECT ON DATABASE {} TO pg_monitor WITH GRANT OPTION",
    "ALTER DATABASE {} CONNECTION LIMIT 0",
    "ALTER DATABASE {} IS_TEMPLATE true",
    "ALTER DATABASE {} SET default_transaction_read_only = on",
    "ALTER DATABASE {} SET search_path = 'a b', public",
)
FACTS = """
SELECT datconnlimit, datistemplate, shobj_description(d.oid, 'pg_database'), pg_get_userbyid(datdba),
    (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(datacl) AS a), setconfig
FROM pg_database d LEFT JOIN pg_db_role_setting ON setdatabase = d.oid AND setrole = 0 WHERE datname = %s"""


def facts(server: servers.TestServer, name: str) -> object:
    with psycopg.connect(server.superuser_url(), autocommit=True) as session:
        return session.execute(FACTS, [name]).fetchone()


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    server, name = servers.get(17), "properties"
    url = server.create_database(name)
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("CREATE TABLE t AS SELECT 1 AS n")
    for statement in OWN:
        server.execute(sql.SQL(statement).format(sql.Identifier(name)))
    yield Source(server, name, url)
    _drop(server, name)


def _drop(server: servers.TestServer, name: str) -> None:
    with psycopg.connect(server.superuser_url(), autocommit=True) as session:
        creation.drop(session, name)


def test_a_login_that_the_copy_lets_in_no_more_restores_it(restores: Restores, source: Source) -> None:
    server, name = source.server, restores.name()
    backup = restores.backups.take(server.superuser_url(source.name), {}, name="properties")
    row = completed(restores.take(restores.at(server, name), backup, "new", name))
    assert row.warnings == []
    assert sample.rows(server, name) == sample.rows(server, source.name)
    assert facts(server, name) == facts(server, source.name)
    assert not stray(server)
    _drop(server, name)
    assert name not in databases(server)


def test_what_new_databases_are_copied_from_is_left_alone(failing: Failing, source: Source) -> None:
    upload = failing.restores.upload(b"CREATE TABLE everywhere (n int);", "shop.sql")
    for mode in ("existing", "replace"):
        words = ("New databases are copied from", "template1")
        failing.take(upload, mode, {}, *words, name="template1", user=servers.SUPERUSER)
    failing.restores.made.clear()
