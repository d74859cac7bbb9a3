from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from psycopg import sql

from jobs.pgtools import server
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import QueryFailed, ToolFailed
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.privileges import missing_privileges
from tests import servers

from .conftest import MakePlace, Place

EVERYTHING = DumpFlags()


@pytest.fixture(scope="module", params=servers.MAJORS)
def place(request: pytest.FixtureRequest, make_place: MakePlace) -> Place:
    return make_place(request.param)


@pytest.fixture
def reader(place: Place) -> Iterator[Conninfo]:
    """A role that may log in and nothing else."""
    name = f"reader_{uuid.uuid4().hex[:8]}"
    role = sql.Identifier(name)
    place.server.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'reading'").format(role))
    place.server.execute(sql.SQL("REVOKE USAGE ON SCHEMA public FROM PUBLIC"), place.name)
    yield place.as_user(name, "reading")
    place.server.execute(sql.SQL("DROP OWNED BY {}").format(role), place.name)
    place.server.execute(sql.SQL("DROP ROLE {}").format(role))


def missing(place: Place, conninfo: Conninfo, flags: DumpFlags = EVERYTHING) -> list[str]:
    with conninfo.connect(place.folder, "pgbr/test") as conn:
        return missing_privileges(conn, flags)


def run(place: Place, statement: str, role: str) -> None:
    place.server.execute(sql.SQL(statement).format(role=sql.Identifier(role)), place.name)


def test_a_server_of_every_major_tells_what_a_manifest_needs(place: Place) -> None:
    run(place, "ALTER DATABASE {role} SET work_mem = '5MB'", place.name)
    with place.connect() as conn:
        facts = server.inspect(conn)
    assert (facts.major, facts.dbname, facts.owner) == (place.server.major, place.name, servers.APP)
    assert facts.version.startswith(f"{facts.major}.")
    assert facts.size_bytes is not None
    assert facts.size_bytes > 1_000_000
    assert (facts.encoding, facts.in_recovery, facts.superuser) == ("UTF8", False, False)
    assert (facts.locale_provider, facts.reads_role_passwords) == ("libc", False)
    assert facts.database_settings == {"work_mem": "5MB"}
    assert facts.extensions == {"plpgsql": "1.0"}


def test_the_owner_and_a_superuser_lack_nothing(place: Place) -> None:
    assert missing(place, place.conninfo) == []
    superuser = place.as_user(servers.SUPERUSER)
    assert missing(place, superuser) == []
    with superuser.connect(place.folder, "pgbr/test") as conn:
        assert server.inspect(conn).reads_role_passwords


def test_what_is_missing_is_listed_until_the_dump_succeeds(place: Place, reader: Conninfo) -> None:
    found = missing(place, reader)
    assert found == [
        'USAGE on schema "Old Stuff"',
        "USAGE on schema audit",
        "USAGE on schema public",
        "SELECT on 1 large objects",
    ]
    with pytest.raises(ToolFailed, match="permission denied for schema"):
        place.dump({}, reader)
    for schema in ('"Old Stuff"', "audit", "public"):
        run(place, f"GRANT USAGE ON SCHEMA {schema} TO {{role}}", reader.user)
    found = missing(place, reader)
    assert "SELECT on table public.orders" in found
    assert 'SELECT on table "Old Stuff"."Table.1"' in found
    assert "SELECT on sequence public.orders_id_seq" in found
    with pytest.raises(ToolFailed, match=r"permission denied for table .*Grant the role USAGE and SELECT"):
        place.dump({}, reader)
    for schema in ('"Old Stuff"', "audit", "public"):
        run(place, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {{role}}", reader.user)
        run(place, f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {{role}}", reader.user)
    without_large_objects = DumpFlags.from_dict({"large_objects": False})
    assert missing(place, reader) == ["SELECT on 1 large objects"]
    assert missing(place, reader, without_large_objects) == []
    place.dump({"large_objects": False}, reader)


def test_row_security_that_would_stop_the_dump_is_named(place: Place, reader: Conninfo) -> None:
    run(place, "GRANT pg_read_all_data TO {role}", reader.user)
    run(place, "ALTER TABLE customers ENABLE ROW LEVEL SECURITY", reader.user)
    flags = DumpFlags.from_dict({"large_objects": False})
    assert missing(place, reader, flags) == [
        "BYPASSRLS or ownership of table public.customers, which has row security"
    ]
    with pytest.raises(ToolFailed, match=r"row-level security.*BYPASSRLS"):
        place.dump({"large_objects": False}, reader)
    visible = {"large_objects": False, "enable_row_security": True}
    assert missing(place, reader, DumpFlags.from_dict(visible)) == []
    place.dump(visible, reader)
    run(place, "ALTER TABLE customers DISABLE ROW LEVEL SECURITY", reader.user)


def test_a_session_that_breaks_is_a_failure_with_the_database_named(shop: Place) -> None:
    with shop.connect() as conn:
        row = conn.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        shop.server.execute(sql.SQL("SELECT pg_terminate_backend({})").format(sql.Literal(row[0])))
        with pytest.raises(QueryFailed, match=rf'database "{shop.name}" failed: .*terminating connection'):
            server.inspect(conn)
