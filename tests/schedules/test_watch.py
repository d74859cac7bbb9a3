"""A watched server: what is new there is registered once and gets its schedule, what has vanished is told."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.models.functions import Now

from jobs import discovery
from jobs.models import Database
from jobs.pgtools.databases import Listed
from jobs.secrets import seal
from jobs.targets import conninfo_for
from pgbr.ports import free_port
from schedules import services, watch
from schedules.models import Schedule
from schedules.retention import Policy
from tests import servers
from tests.at_once import at_once
from tests.workers import database_url

pytestmark = pytest.mark.django_db(transaction=True)


class Server:
    """Databases on a real server, which is others' too: ours begin with `mark`."""

    def __init__(self) -> None:
        self.real = servers.get(17)
        self.mark = f"w{uuid.uuid4().hex[:8]}_"
        self.made: set[str] = set()

    def make(self, name: str) -> str:
        self.made.add(f"{self.mark}{name}")
        self.real.create_database(f"{self.mark}{name}")
        return f"{self.mark}{name}"

    def drop(self, name: str) -> None:
        self.real.drop_database(f"{self.mark}{name}")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    for name in made.made:
        made.real.drop_database(name)


@pytest.fixture
def watched(user: User, server: Server) -> Database:
    url = server.real.url(server.make("main"))
    include = [f"{server.mark}*"]
    return Database.objects.create(
        user=user, name="main", sealed_url=seal(url), watch=True, watch_include=include
    )


@pytest.fixture
def nightly(watched: Database, user: User) -> Schedule:
    plan = services.Plan(
        name="nightly", cron_expression="30 2 * * *", timezone="Europe/Berlin", flags={"format": "plain"},
        enabled=False, policy=Policy(keep_daily=7), ping_success_url="https://example.com/ping",
    )  # fmt: skip
    schedule = services.create(watched, plan, by=user)
    Database.objects.filter(id=watched.id).update(watch_schedule_id=schedule.id)
    return schedule


def look(database: Database) -> dict[str, Any]:
    """Now, whenever the last look was; what it found."""
    Database.objects.filter(id=database.id).update(watched_at=None)
    assert watch.watch_due() == 1
    database.refresh_from_db()
    assert isinstance(database.watched, dict)
    return database.watched


def names(server: Server) -> set[str]:
    """What is registered, as the server calls it."""
    rows = Database.objects.select_related("user")
    return {conninfo_for(row).dbname.removeprefix(server.mark) for row in rows}


def test_new_ones_are_registered_with_a_copy_of_the_schedule(
    watched: Database, nightly: Schedule, server: Server
) -> None:
    crm = server.make("crm")

    seen = look(watched)

    row = Database.objects.get(name=f"main-{crm}")
    assert conninfo_for(row).dbname == crm
    copy = Schedule.objects.get(database=row)
    assert (copy.name, copy.enabled, copy.user) == (f"nightly main-{crm}", True, watched.user)
    assert copy.next_run_at is not None
    plan, original = services.plan_of(copy), services.plan_of(nightly)
    assert (plan.cron_expression, plan.timezone, plan.flags) == (
        "30 2 * * *",
        "Europe/Berlin",
        {"format": "plain"},
    )
    assert (plan.policy, plan.ping_success_url) == (original.policy, "")
    assert (seen["new"], seen["problems"], seen["vanished"]) == ([row.name], [], [])
    assert look(watched)["new"] == []
    assert Schedule.objects.count() == 2


def test_patterns_choose(watched: Database, server: Server) -> None:
    for name in ("shop_a", "shop_b", "shop_b_test", "crm"):
        server.make(name)
    Database.objects.filter(id=watched.id).update(
        watch_include=[f"{server.mark}shop_*"], watch_exclude=["*_test", f"{server.mark}SHOP_A"]
    )

    look(watched)
    assert names(server) == {"main", "shop_a", "shop_b"}


def test_without_patterns_it_is_every_one(
    watched: Database, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [Listed(name, True, closed, True) for name, closed in (("a", False), ("b", False), ("c", True))]
    monkeypatch.setattr(discovery, "databases", lambda _: listed)
    Database.objects.filter(id=watched.id).update(watch_include=[])

    look(watched)
    assert names(server) == {"main", "a", "b"}


def test_vanished_ones_are_told_until_they_are_back(watched: Database, server: Server) -> None:
    crm = server.make("crm")
    look(watched)
    server.drop("crm")

    assert look(watched)["vanished"] == [[f"main-{crm}", crm]]
    assert names(server) == {"main", "crm"}
    server.make("crm")
    assert look(watched)["vanished"] == []
    assert Database.objects.count() == 2


def test_excluded_and_foreign_ones_are_no_business_of_the_watch(
    watched: Database, server: Server, other_user: User, user: User
) -> None:
    gone = server.real.url(f"{server.mark}gone_test")
    Database.objects.create(user=user, name="gone", sealed_url=seal(gone))
    Database.objects.create(user=other_user, name="theirs", sealed_url=seal(server.real.url("theirs")))
    elsewhere = f"postgresql://app@127.0.0.1:{free_port()}/{server.mark}x"
    Database.objects.create(user=user, name="elsewhere", sealed_url=seal(elsewhere))

    assert look(watched)["vanished"] == [["gone", f"{server.mark}gone_test"]]
    Database.objects.filter(id=watched.id).update(watch_exclude=["*_test"])
    assert look(watched)["vanished"] == []


def test_what_was_removed_by_hand_is_not_registered_again(watched: Database, server: Server) -> None:
    crm = server.make("crm")
    look(watched)
    Database.objects.get(name=f"main-{crm}").delete()

    assert look(watched)["left"] == [crm]
    assert look(watched)["left"] == [crm]
    assert names(server) == {"main"}
    server.drop("crm")
    assert look(watched)["left"] == []
    server.make("crm")
    assert look(watched)["new"] == [f"main-{crm}"], "another database of that name"


def test_own_database_of_pgbr_is_left_alone(user: User) -> None:
    own = connection.settings_dict["NAME"]
    url = database_url().rpartition("/")[0] + "/postgres"
    row = Database.objects.create(
        user=user, name="house", sealed_url=seal(url), watch=True, watch_include=["postgres", own]
    )

    seen = look(row)
    assert seen["problems"] == []
    assert Database.objects.count() == 1
    assert own in {one.name for one in discovery.discover(row, by=user)}


def test_server_that_is_away_keeps_what_was_known(watched: Database, server: Server) -> None:
    server.make("crm")
    known = look(watched)["known"]
    away = f"postgresql://app:hunter2@127.0.0.1:{free_port()}/x"
    Database.objects.filter(id=watched.id).update(sealed_url=seal(away))

    seen = look(watched)
    assert "refused" in seen["problems"][0]
    assert "hunter2" not in str(seen)
    assert seen["known"] == known
    assert seen["vanished"] == []


def test_schedule_that_cannot_be_copied_leaves_nothing_half_done(
    watched: Database, nightly: Schedule, server: Server
) -> None:
    crm = server.make("crm")
    Schedule.objects.filter(id=nightly.id).update(cron_expression="nonsense")

    seen = look(watched)
    assert (seen["new"], Database.objects.count()) == ([], 1)
    assert crm in seen["problems"][0]
    Schedule.objects.filter(id=nightly.id).update(cron_expression="@daily")
    assert look(watched)["new"] == [f"main-{crm}"]


def test_schedule_that_is_gone_is_told(watched: Database, nightly: Schedule, server: Server) -> None:
    server.make("crm")
    services.delete(nightly, by=watched.user)

    seen = look(watched)
    assert len(seen["new"]) == 1
    assert "the one to copy is gone" in seen["problems"][0]


def test_another_look_comes_after_an_hour_not_before(watched: Database) -> None:
    assert watch.watch_due() == 1
    assert watch.watch_due() == 0
    Database.objects.update(watched_at=Now() - timedelta(minutes=51))
    assert watch.watch_due() == 1
    Database.objects.update(watched_at=None, watch=False)
    assert watch.watch_due() == 0


def test_worker_that_died_while_it_looked_delays_the_look_for_minutes(
    watched: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_look", lambda _: None)
    assert watch.watch_due() == 1
    assert watch.watch_due() == 0
    watched.refresh_from_db()
    assert watched.watched_at is not None
    Database.objects.update(watched_at=watched.watched_at - timedelta(minutes=10))
    assert watch.watch_due() == 1


def test_three_workers_look_once(watched: Database, server: Server) -> None:
    server.make("crm")

    assert sorted(at_once(3, watch.watch_due)) == [0, 0, 1]
    assert names(server) == {"main", "crm"}


def test_no_connection_is_held_while_a_server_is_asked(
    watched: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, held = connections["default"], []

    def ask(_: Any) -> discovery.Answer:
        held.append(own.connection)
        return discovery.Answer([], "")

    monkeypatch.setattr(discovery, "ask", ask)
    look(watched)
    assert held == [None]


@pytest.mark.parametrize(
    "change", [{"watch": False}, {"sealed_url": seal("postgresql://u@elsewhere.test/x")}]
)
def test_change_of_the_row_while_the_server_is_asked_counts(
    watched: Database, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    def ask(_: Any) -> discovery.Answer:
        Database.objects.update(**change)
        return discovery.Answer([Listed(watched.watch_include[0].rstrip("*"), True, False, True)], "")

    monkeypatch.setattr(discovery, "ask", ask)
    watch.watch_due()
    assert Database.objects.count() == 1


@pytest.mark.parametrize("value", [[], "x", 3, {"known": "x", "vanished": {}}, {"known": [[1], {}, 3]}])
def test_nonsense_in_the_rows_json_stops_nothing(watched: Database, server: Server, value: Any) -> None:
    server.make("crm")
    Database.objects.update(watched=value, watch_exclude=value)

    assert len(look(watched)["new"]) == 1
