"""What a server's databases are, and registering them: by the same login, once, whatever they are called."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from django.contrib.auth.models import User
from psycopg import sql

from jobs import databases, discovery
from jobs.discovery import Found
from jobs.models import ActivityEvent, Database, RestoreJob
from jobs.pgtools import databases as listing
from jobs.pgtools.errors import ConnectionFailed, PgToolsError
from jobs.secrets import seal
from jobs.services import NotFound, ServiceError
from jobs.targets import conninfo_for
from jobs.waiting import TooMany, looks
from pgbr.ports import free_port
from tests import servers
from tests.abuse.fakepostgres import FakePostgres
from tests.at_once import at_once

pytestmark = pytest.mark.django_db

AWKWARD = [
    'it\'s "quoted"',
    "Zoë 数据",
    "host=evil dbname=postgres",
    "a/b?c=d&e#f",
    "100%41",
    "back\\slash",
    " x ",
]


@pytest.fixture(scope="module")
def server() -> servers.TestServer:
    return servers.get(17)


class Places:
    """Databases on the server, whose names begin alike."""

    def __init__(self, server: servers.TestServer) -> None:
        self.server = server
        self.mark = uuid.uuid4().hex[:8]
        self.made: list[str] = []

    def make(self, name: str) -> str:
        self.made.append(f"{self.mark}{name}")
        self.server.create_database(self.made[-1])
        return self.made[-1]

    def of(self, found: list[Found]) -> dict[str, Found]:
        """Those of this test; the server is others' too."""
        return {one.name.removeprefix(self.mark): one for one in found if one.name.startswith(self.mark)}


@pytest.fixture
def places(server: servers.TestServer) -> Iterator[Places]:
    made = Places(server)
    yield made
    for name in made.made:
        server.drop_database(name)


@pytest.fixture
def database(user: User, server: servers.TestServer, places: Places) -> Database:
    url = server.url(places.make("shop"))
    return Database.objects.create(
        user=user, name="shop", sealed_url=seal(url), max_parallel=2, protected=True
    )


def test_databases_with_their_sizes_and_what_they_are_called_here(database: Database, places: Places) -> None:
    places.make("crm")

    found = places.of(discovery.discover(database, by=database.user))

    assert list(found) == ["crm", "shop"]
    assert found["shop"].registered_as == "shop"
    assert found["crm"].free
    assert (found["crm"].size or 0) > 1_000_000


def test_templates_and_closed_ones_are_left_out_and_locked_ones_explained(
    database: Database, places: Places, server: servers.TestServer
) -> None:
    closed, template, locked = places.make("closed"), places.make("template"), places.make("locked")
    half_dropped = sql.SQL("UPDATE pg_database SET datconnlimit = -2 WHERE datname = {}")
    server.execute(half_dropped.format(sql.Literal(places.make("half dropped"))))
    for statement, name in (
        ("ALTER DATABASE {} ALLOW_CONNECTIONS false", closed),
        ("ALTER DATABASE {} IS_TEMPLATE true", template),
        ("REVOKE ALL ON DATABASE {} FROM PUBLIC", locked),
        ("ALTER DATABASE {} OWNER TO postgres", locked),
    ):
        server.execute(sql.SQL(statement).format(sql.Identifier(name)))

    found = places.of(discovery.discover(database, by=database.user))
    server.execute(sql.SQL("ALTER DATABASE {} IS_TEMPLATE false").format(sql.Identifier(template)))

    assert list(found) == ["locked", "shop"]
    assert found["locked"].size is None
    assert "may not connect" in found["locked"].reason
    assert not found["locked"].free


@pytest.mark.parametrize(("column", "why"), [("kept_name", "kept"), ("temporary_name", "making")])
def test_what_a_restore_keeps_or_makes_is_explained_and_not_offered(
    database: Database, places: Places, column: str, why: str
) -> None:
    """It is dropped again: registered, and watched, it would be told as vanished."""
    name = places.make("shop_before_20260102_030405")
    RestoreJob.objects.create(user=database.user, target_name="shop", status="completed", **{column: name})

    found = places.of(discovery.discover(database, by=database.user))

    assert why in found["shop_before_20260102_030405"].reason
    assert not found["shop_before_20260102_030405"].free


def test_sizes_that_cannot_be_told_hide_no_database(
    database: Database, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SIZES", "SELECT oid, 1 / 0 FROM pg_database WHERE oid = ANY(%s)")

    found = places.of(discovery.discover(database, by=database.user))
    assert (found["shop"].size, found["shop"].registered_as) == (None, "shop")


def test_few_look_at_once(database: Database) -> None:
    with looks.turn(database.user), looks.turn(database.user), pytest.raises(TooMany):
        discovery.discover(database, by=database.user)


def test_spelling_of_an_address_is_no_other_server(database: Database, user: User, places: Places) -> None:
    name = places.make("crm")
    port = places.server.port
    urls = {
        "by name": f"postgres://other@LOCALHOST:0{port}/{name}",
        "by query": f"postgresql://other@/x?host=127.0.0.1&port={port}&dbname={name}",
        "by address": f"postgresql://other@[0:0:0:0:0:0:0:1]:{port}/{name}",
    }
    for label, url in urls.items():
        row = Database.objects.create(user=user, name=label, sealed_url=seal(url))
        assert places.of(discovery.discover(database, by=user))["crm"].registered_as == label
        row.delete()


def test_others_registrations_and_other_servers_do_not_count(
    database: Database, other_user: User, user: User, places: Places
) -> None:
    name = places.make("crm")
    Database.objects.create(user=other_user, name="theirs", sealed_url=seal(places.server.url(name)))
    elsewhere = f"postgresql://app@127.0.0.1:{free_port()}/{name}"
    Database.objects.create(user=user, name="elsewhere", sealed_url=seal(elsewhere))
    Database.objects.create(user=user, name="unreadable", sealed_url="garbage")

    assert places.of(discovery.discover(database, by=user))["crm"].registered_as is None


def test_registered_ones_log_in_as_their_connection_does(database: Database, places: Places) -> None:
    crm = places.make("crm")

    (row,) = discovery.register(database, [crm], by=database.user)

    assert (row.name, row.user, row.max_parallel, row.protected) == (f"shop-{crm}", database.user, 2, True)
    assert conninfo_for(row).dbname == crm
    assert databases.check(row)["dbname"] == crm
    event = ActivityEvent.objects.get(object_id=str(row.id))
    assert (event.action, event.detail) == ("add", {"discovered_through": "shop"})


@pytest.mark.parametrize("name", AWKWARD)
def test_names_are_only_names(database: Database, places: Places, name: str) -> None:
    full = places.make(name)
    found = places.of(discovery.discover(database, by=database.user))[name]
    assert found.free

    (row,) = discovery.register(database, [found.name], by=database.user)

    conninfo = conninfo_for(row)
    assert (conninfo.dbname, conninfo.server) == (full, conninfo_for(database).server)
    assert databases.check(row)["dbname"] == full
    assert row.name.isprintable()


def test_line_break_in_a_name_is_told_and_not_registered(database: Database, places: Places) -> None:
    full = places.make("two\nlines")

    found = places.of(discovery.discover(database, by=database.user))["two\nlines"]
    assert "line break" in found.reason
    with pytest.raises(PgToolsError, match="line break"):
        discovery.register(database, [full], by=database.user)
    assert Database.objects.count() == 1


def test_name_that_is_no_utf8_hides_no_other(database: Database, places: Places) -> None:
    server = places.server
    latin = f"{places.mark}latin"
    places.made += [latin]
    make = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    server.execute(make.format(sql.Identifier(latin)))
    odd = sql.Identifier(f"{places.mark}café")
    server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(odd), latin)
    try:
        found = places.of(discovery.discover(database, by=database.user))
    finally:
        server.execute(sql.SQL("DROP DATABASE {}").format(odd), latin)

    assert found["caf\\xe9"].reason.startswith("Its name is no UTF-8")
    assert found["shop"].registered_as == "shop"


def test_nothing_is_registered_twice(database: Database, places: Places) -> None:
    crm = places.make("crm")

    assert len(discovery.register(database, [crm, crm], by=database.user)) == 1
    assert discovery.register(database, [crm, places.made[0]], by=database.user) == []


@pytest.mark.django_db(transaction=True)
def test_two_at_once_register_it_once(database: Database, places: Places) -> None:
    names = [places.make("a"), places.make("b")]
    made = at_once(3, lambda: len(discovery.register(database, names, by=database.user)))

    assert sorted(made) == [0, 0, 2]
    assert Database.objects.count() == 3


def test_names_here_are_unique_and_fit(database: Database, user: User, places: Places) -> None:
    taken = {"shop-crm", "shop-crm-2"}

    assert discovery.free_name("shop-crm", taken) == "shop-crm-3"
    assert discovery.free_name("a\nb", taken) == "a_b"
    assert discovery.free_name("x" * 200, {"x" * 100}) == "x" * 98 + "-2"


@pytest.mark.parametrize("names", [[], [f"n{number}" for number in range(501)]])
def test_neither_none_nor_thousands_at_once(database: Database, names: list[str]) -> None:
    with pytest.raises(ServiceError, match="1 to 500"):
        discovery.register(database, names, by=database.user)


def test_anothers_connection_is_not_found(database: Database, other_user: User) -> None:
    with pytest.raises(NotFound):
        discovery.discover(database, by=other_user)
    with pytest.raises(NotFound):
        discovery.register(database, ["x"], by=other_user)


def test_server_that_is_away_is_told_without_the_password(user: User) -> None:
    url = f"postgresql://app:hunter2@127.0.0.1:{free_port()}/shop"
    gone = Database.objects.create(user=user, name="gone", sealed_url=seal(url))

    with pytest.raises(ConnectionFailed, match="refused") as refused:
        discovery.discover(gone, by=user)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("how", ["hangs", "chatters", ""])
def test_hostile_server_is_cut_off(user: User, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "LONGEST_SECONDS", 1.0)
    started = time.monotonic()
    with FakePostgres({}, how) as server:
        url = f"postgresql://u:hunter2@127.0.0.1:{server.port}/x?sslmode=disable"
        row = Database.objects.create(user=user, name="hostile", sealed_url=seal(url))
        with pytest.raises(PgToolsError, match="not done within 1 s" if how else "as no PostgreSQL does"):
            discovery.discover(row, by=user)
    assert time.monotonic() - started < 10


def test_login_really_is_tried(database: Database, places: Places) -> None:
    """The same login: what was registered is reached with the password that the connection has."""
    (row,) = discovery.register(database, [places.make("crm")], by=database.user)

    with psycopg.connect(conninfo_for(row).url()) as opened:
        assert opened.info.user == servers.APP
