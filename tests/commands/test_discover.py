from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from psycopg import sql

from jobs import databases
from jobs.models import Database
from jobs.targets import conninfo_for
from tests import servers
from tests.commands.conftest import Call

MARK = f"d{uuid.uuid4().hex[:8]}_"


@pytest.fixture(scope="module")
def server() -> Iterator[servers.TestServer]:
    """With three databases, one of which the login may not use."""
    made = servers.get(17)
    for name in ("main", "crm", "locked"):
        made.create_database(MARK + name)
    locked = sql.Identifier(f"{MARK}locked")
    made.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(locked))
    made.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(locked))
    yield made
    for name in ("main", "crm", "locked"):
        made.drop_database(MARK + name)


@pytest.fixture
def main(superuser: User, server: servers.TestServer) -> Database:
    return databases.register(superuser, "main", server.url(f"{MARK}main"), by=superuser)


def test_lists_what_is_there_and_what_is_registered(call: Call, main: Database) -> None:
    said = call("discover", "main")

    lines = {line.split()[0]: line for line in said.out.splitlines() if line.startswith(MARK)}
    assert said.code == 0
    assert lines[f"{MARK}main"].endswith("registered as main")
    assert lines[f"{MARK}crm"].endswith("-")
    assert " MB" in lines[f"{MARK}crm"]
    assert "may not connect" in lines[f"{MARK}locked"]
    assert Database.objects.count() == 1


def test_json_is_one_object_a_database(call: Call, main: Database) -> None:
    found = {one["name"]: one for one in call("discover", "main", "--json").objects}

    crm = found[f"{MARK}crm"]
    assert crm.pop("size") > 1_000_000
    assert crm == {"name": f"{MARK}crm", "registered_as": None, "reason": ""}
    assert found[f"{MARK}main"]["registered_as"] == "main"
    assert found[f"{MARK}locked"]["size"] is None


def test_registers_the_named_ones_once(call: Call, main: Database) -> None:
    said = call("discover", "main", "--register", f"{MARK}crm", f"{MARK}main", "--json")

    row = Database.objects.get(name=f"main-{MARK}crm")
    assert said.objects == [{"id": str(row.id), "name": row.name, "dbname": f"{MARK}crm"}]
    assert conninfo_for(row).dbname == f"{MARK}crm"
    again = call("discover", "main", "--register", f"{MARK}crm")
    assert (again.code, Database.objects.count()) == (0, 2)
    assert "registered already" in again.out


def test_all_means_all_that_the_login_can_use(call: Call, main: Database) -> None:
    said = call("discover", "main", "--all")

    assert said.code == 0
    assert f"{MARK}crm is registered as main-{MARK}crm" in said.out
    assert not Database.objects.filter(name__contains="locked").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nowhere", "has no database"), (f"{MARK}locked", "may not")],
    ids=["nowhere", "locked"],
)
def test_what_is_not_there_or_not_usable_is_refused(
    call: Call, main: Database, name: str, expected: str
) -> None:
    said = call("discover", "main", "--register", f"{MARK}crm", name)

    assert said.code == 2
    assert expected in said.err
    assert Database.objects.count() == 1


def test_unknown_connection_and_other_peoples_are_refused(call: Call, main: Database, user: User) -> None:
    assert call("discover", "nowhere").code == 2
    said = call("discover", "main", "--user", user.username)
    assert said.code == 2
    assert "No database is called 'main'" in said.err


def test_control_characters_do_not_reach_the_terminal(
    call: Call, main: Database, server: servers.TestServer
) -> None:
    server.create_database(f"{MARK}\x1b[31m")
    try:
        said = call("discover", "main")
    finally:
        server.drop_database(f"{MARK}\x1b[31m")

    assert f"{MARK}\\x1b[31m" in said.out
    assert "\x1b" not in said.out
