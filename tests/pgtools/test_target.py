from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from jobs.pgtools import server
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import QueryFailed
from jobs.pgtools.target import TargetFacts, look
from tests import servers
from tests.abuse.fakepostgres import FakePostgres

from .conftest import MakePlace, Place

LEFTOVERS = {
    "a table": "CREATE TABLE t (a int)",
    "a view": "CREATE VIEW v AS SELECT 1 AS a",
    "a sequence": "CREATE SEQUENCE s",
    "a function": "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "an enum": "CREATE TYPE e AS ENUM ('a')",
    "a domain": "CREATE DOMAIN d AS int",
    "a composite type": "CREATE TYPE c AS (a int)",
    "a schema": "CREATE SCHEMA s",
    "a large object": "SELECT lo_create(0)",
    "a collation": "CREATE COLLATION german (locale = 'C')",
    "a publication": "CREATE PUBLICATION p",
}


@pytest.fixture(scope="module", params=servers.MAJORS)
def place(request: pytest.FixtureRequest, make_place: MakePlace) -> Place:
    return make_place(request.param)


@pytest.fixture
def nobody(shop: Place) -> Iterator[Conninfo]:
    """A role that may log in and nothing else."""
    role = sql.Identifier(f"nobody_{uuid.uuid4().hex[:8]}")
    shop.server.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x'").format(role))
    yield shop.as_user(role.as_string().strip('"'), "x")
    shop.server.execute(sql.SQL("DROP ROLE {}").format(role))


def facts_of(place: Place, conninfo: Conninfo | None = None, name: str | None = None) -> TargetFacts:
    """As the login of `place` sees its own database, or another one from outside."""
    with (conninfo or place.conninfo).connect(place.folder, "pgbr/test") as conn:
        return look(conn, conn if name is None else None, place.name if name is None else name)


def test_every_major_tells_what_a_restore_needs(place: Place) -> None:
    found = facts_of(place)
    assert (found.major, found.name) == (place.server.major, place.name)
    assert (found.owner, found.user) == ("app", "app")
    assert (found.exists, found.owns, found.empty, found.superuser) == (True, True, False, False)
    assert found.tables == 7
    assert found.objects == 13  # the tables, two views, a sequence, two schemas, a large object
    assert (found.size_bytes or 0) > 1_000_000
    assert (found.encoding, found.read_only, found.in_recovery) == ("UTF8", False, False)
    assert found.lock_budget == 64 * (122 if found.major < 18 else 135)
    assert {"app", "postgres", "pg_signal_backend"} <= found.roles
    assert found.assumable - {"pg_database_owner"} == {"app"}
    assert {"pg_default", "pg_global"} <= found.tablespaces
    assert {"plpgsql", "hstore"} <= found.extensions
    assert found.superuser_extensions & {"hstore", "file_fdw"} == {"file_fdw"}


def test_it_says_the_same_of_which_database_it_is_as_the_facts_of_a_server(place: Place) -> None:
    found = facts_of(place)
    with place.connect() as conn:
        facts = server.inspect(conn)
    assert (facts.system_identifier, facts.oid) == (found.system_identifier, found.oid)
    assert len(facts.system_identifier) == 19


def test_a_database_that_is_not_there(shop: Place) -> None:
    found = facts_of(shop, name="no such\"one'")
    assert (found.exists, found.oid, found.size_bytes, found.empty) == (False, None, None, False)


def test_a_database_seen_only_from_outside_counts_as_one_that_holds_something(shop: Place) -> None:
    found = facts_of(shop, name="postgres")
    assert (found.exists, found.owner, found.owns, found.empty) == (True, "postgres", False, False)


def test_whatever_is_left_in_a_database_makes_it_not_empty(make_place: MakePlace) -> None:
    place = make_place(17, "CREATE EXTENSION hstore")
    with place.connect() as conn:
        assert look(conn, conn, place.name).empty
        for what, statement in LEFTOVERS.items():
            with conn.transaction(force_rollback=True):
                conn.execute(statement)
                found = look(conn, conn, place.name)
                assert (found.objects, found.empty) == (1, False), what
        with conn.transaction(force_rollback=True):
            conn.execute("CREATE TEMPORARY TABLE passing (a int)")
            assert look(conn, conn, place.name).empty
        found = look(conn, conn, place.name)
        assert found.installed == {"plpgsql", "hstore"}
        assert found.foreign_extensions == {"plpgsql"}


def test_what_a_login_may_not_do_is_known(shop: Place, nobody: Conninfo) -> None:
    nothing, owner = facts_of(shop, nobody), facts_of(shop)
    root = facts_of(shop, Conninfo.parse(shop.server.superuser_url(shop.name)))
    rights = ("owns", "may_create", "may_create_database", "may_create_roles")
    assert [getattr(nothing, right) for right in rights] == [False, False, False, False]
    assert [getattr(owner, right) for right in rights] == [True, True, False, False]
    assert [getattr(root, right) for right in rights] == [True, True, True, True]
    assert root.assumable == root.roles
    assert not root.superuser_extensions


def test_others_sessions_are_counted_and_whether_they_could_be_ended(shop: Place) -> None:
    quiet = facts_of(shop)
    assert (quiet.sessions, quiet.may_end_sessions) == (0, True)
    with psycopg.connect(shop.url):
        own = facts_of(shop)
        assert (own.sessions, own.may_end_sessions) == (1, True)
        with psycopg.connect(shop.server.superuser_url(shop.name)):
            found = facts_of(shop)
            assert (found.sessions, found.may_end_sessions) == (2, False)
            root = facts_of(shop, Conninfo.parse(shop.server.superuser_url(shop.name)))
            assert (root.sessions, root.may_end_sessions) == (2, True)


def test_a_role_that_may_end_sessions_may_not_end_those_of_superusers(shop: Place, nobody: Conninfo) -> None:
    grant = sql.SQL("GRANT pg_signal_backend TO {}").format(sql.Identifier(nobody.user))
    with psycopg.connect(shop.url):
        assert not facts_of(shop, nobody).may_end_sessions
        shop.server.execute(grant)
        assert facts_of(shop, nobody).may_end_sessions
        with psycopg.connect(shop.server.superuser_url(shop.name)):
            assert not facts_of(shop, nobody).may_end_sessions


def test_a_database_set_to_read_only_says_so(make_place: MakePlace) -> None:
    place = make_place(17, "")
    setting = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
    place.server.execute(setting.format(sql.Identifier(place.name)))
    assert facts_of(place).database_read_only
    outside = Conninfo.parse(place.server.url("postgres"))
    assert not facts_of(place, outside, place.name).read_only


def test_a_session_that_breaks_is_a_failure(shop: Place) -> None:
    with shop.connect() as conn:
        end = sql.SQL("SELECT pg_terminate_backend({})").format(sql.Literal(conn.info.backend_pid))
        shop.server.execute(end)
        with pytest.raises(QueryFailed, match=rf'database "{shop.name}" failed: .*terminating connection'):
            look(conn, None, shop.name)


def test_a_server_that_is_none_is_told_so(tmp_path: Path) -> None:
    with FakePostgres({}) as impostor:
        login = Conninfo.parse(f"postgresql://app:x@127.0.0.1:{impostor.port}/shop")
        conn = login.connect(tmp_path, "pgbr/test")
        with conn, pytest.raises(QueryFailed, match="as no PostgreSQL does"):
            look(conn, conn, "shop")
