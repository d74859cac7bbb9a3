from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.globals import globals_argv
from jobs.pgtools.roles import RolesNotSaved, statements_for

from .conftest import MakePlace, Place

ATTRIBUTES = """
    SELECT a.rolsuper, a.rolcreaterole, a.rolcreatedb, a.rolreplication, a.rolbypassrls, a.rolcanlogin,
        a.rolinherit, a.rolconnlimit, a.rolvaliduntil::text, a.rolpassword, r.rolconfig
    FROM pg_authid a JOIN pg_roles r ON r.oid = a.oid WHERE a.rolname = %s
"""
MEMBERS = """
    SELECT m.admin_option FROM pg_auth_members m
    WHERE m.roleid = to_regrole(%s) AND m.member = to_regrole(%s)
"""


@dataclass
class Saved:
    """A server whose globals were saved; the roles are gone since."""

    place: Place
    owner: str
    group: str
    boss: str
    globals_sql: bytes
    before: tuple[Any, ...]

    @property
    def all(self) -> set[str]:
        return {self.owner, self.group, self.boss}


@pytest.fixture(scope="module", params=[14, 18])
def globals_of(request: pytest.FixtureRequest, make_place: MakePlace) -> Saved:
    place = make_place(request.param, "")
    mark = uuid.uuid4().hex[:6]
    owner, group, boss = f'{mark} "the; owner', f"{mark} grüppe", f"{mark}_boss"
    made = [
        """CREATE ROLE {owner} LOGIN NOINHERIT PASSWORD 'it''s "secret"; \\x' CREATEDB CONNECTION LIMIT 7
            VALID UNTIL '2031-02-03 04:05:06+00'""",
        "CREATE ROLE {group}",
        "CREATE ROLE {boss} SUPERUSER BYPASSRLS",
        "GRANT {group} TO {owner} WITH ADMIN OPTION",
        "GRANT pg_read_server_files TO {group}",
        'ALTER ROLE {owner} SET search_path TO "a \'b", public',
        "ALTER ROLE {owner} SET application_name TO 'it''s; DROP \\ x'",
    ]
    names = {"owner": sql.Identifier(owner), "group": sql.Identifier(group), "boss": sql.Identifier(boss)}
    for statement in made:
        place.server.execute(sql.SQL(statement).format(**names))
    root = Conninfo.parse(place.server.superuser_url())
    dump, _ = place.run(globals_argv(place.toolset, "postgres", role_passwords=True), root)
    before = attributes(place, owner)
    drop(place, {owner, group, boss})
    return Saved(place, owner, group, boss, dump, before)


@pytest.fixture
def saved(globals_of: Saved) -> Iterator[Saved]:
    yield globals_of
    drop(globals_of.place, globals_of.all)


def drop(place: Place, roles: set[str]) -> None:
    for role in roles:
        place.server.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def attributes(place: Place, role: str) -> tuple[Any, ...]:
    with psycopg.connect(place.server.superuser_url()) as conn:
        return conn.execute(ATTRIBUTES, [role]).fetchone() or ()


def members(place: Place, group: str, member: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.server.superuser_url()) as conn:
        quoted = [sql.Identifier(name).as_string(conn) for name in (group, member)]
        return conn.execute(MEMBERS, quoted).fetchall()


def test_a_superuser_gets_the_roles_as_they_were_but_no_superuser(saved: Saved) -> None:
    statements = statements_for(saved.globals_sql, saved.all, superuser=True)
    with psycopg.connect(saved.place.server.superuser_url(), autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement.sql.encode())
    assert attributes(saved.place, saved.owner) == saved.before
    assert members(saved.place, saved.group, saved.owner) == [(True,)]
    assert members(saved.place, "pg_read_server_files", saved.group) == []
    boss = attributes(saved.place, saved.boss)
    assert (boss[0], boss[4]) == (False, True)
    assert [statement.role for statement in statements if statement.softened] == [saved.boss]


def test_who_may_create_roles_creates_them_without_rights_it_does_not_have(saved: Saved) -> None:
    maker = f"maker_{uuid.uuid4().hex[:6]}"
    server = saved.place.server
    create = sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD 'x'")
    server.execute(create.format(sql.Identifier(maker)))
    statements = statements_for(saved.globals_sql, saved.all)
    try:
        with psycopg.connect(server.url("postgres", maker, "x"), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement.sql.encode())
            conn.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(saved.owner)))
        owner = attributes(saved.place, saved.owner)
        assert owner[:5] == (False,) * 5
        assert owner[5:] == saved.before[5:]
        assert {one.role for one in statements if one.softened} == {saved.owner, saved.boss}
    finally:
        drop(saved.place, saved.all)
        drop(saved.place, {maker})


def test_only_what_was_asked_for_is_created(saved: Saved) -> None:
    statements = statements_for(saved.globals_sql, {saved.owner}, superuser=True)
    assert {statement.role for statement in statements} == {saved.owner}
    assert not any("GRANT" in statement.sql for statement in statements)
    assert statements_for(saved.globals_sql, set()) == []
    assert "SCRAM" not in repr(statements)


def test_roles_that_were_not_saved_are_named() -> None:
    with pytest.raises(RolesNotSaved, match='do not hold "eve", "zoe"'):
        statements_for(b"CREATE ROLE ada;", {"eve", "zoe", "ada"})


def test_nothing_but_roles_is_taken_over() -> None:
    script = b"""\\restrict x
        SET client_encoding = 'LATIN1';
        CREATE ROLE "\xe9ve"; DROP DATABASE shop; ; COMMIT;
        ALTER ROLE "\xe9ve" WITH LOGIN; DROP TABLE t;
        ALTER ROLE "\xe9ve" IN DATABASE shop SET work_mem TO '1GB';
        COMMENT ON ROLE "\xe9ve" IS 'x; CREATE ROLE zoe;';
        GRANT "\xe9ve" TO zoe; GRANT SELECT ON TABLE t TO "\xe9ve";
        CREATE TABLESPACE fast LOCATION '/x';"""
    found = [statement.sql for statement in statements_for(script, {"éve"}, superuser=True)]
    assert found == ['CREATE ROLE "éve" WITH LOGIN']


@pytest.mark.parametrize(
    ("granted", "expected"),
    [
        ("GRANT a TO b GRANTED BY postgres", 'GRANT "a" TO "b"'),
        ("GRANT a TO b WITH ADMIN OPTION, INHERIT TRUE GRANTED BY c", 'GRANT "a" TO "b" WITH ADMIN OPTION'),
        ("GRANT a TO b WITH INHERIT FALSE, SET FALSE", 'GRANT "a" TO "b" WITH INHERIT FALSE, SET FALSE'),
    ],
)
def test_memberships_keep_what_limits_them(granted: str, expected: str) -> None:
    script = f"CREATE ROLE a; CREATE ROLE b; {granted};".encode()
    last = statements_for(script, {"a", "b"}, superuser=True)[-1]
    assert (last.sql, last.role, last.optional) == (expected, "b", True)
