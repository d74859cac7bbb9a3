"""Targets that cannot take a restore, or must not: refused with the reason and a remedy, and left alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from psycopg import sql

from jobs.models import BackupJob, Database
from jobs.pgtools.errors import InvalidFlags
from jobs.processors.load import Load
from jobs.restoring import MigrationOrder, enqueue_migration
from jobs.secrets import seal
from jobs.services import ServiceError
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Failing, Restores, completed, databases, number

pytestmark = pytest.mark.django_db(transaction=True)

MakeSource = Callable[..., Source]
ORDERS = (
    "CREATE TABLE orders AS SELECT n FROM generate_series(1, 50) AS n; ALTER TABLE orders ADD PRIMARY KEY (n)"
)


@pytest.fixture(scope="module")
def source(make_source: MakeSource) -> Source:
    return make_source(17, ORDERS)


@pytest.fixture
def backup(restores: Restores, source: Source) -> BackupJob:
    return restores.backups.take(source.url, {}, name="shop")


# What the target lacks --------------------------------------------------------------------------


def test_a_missing_extension(failing: Failing, make_source: MakeSource) -> None:
    old = make_source(16, ORDERS)
    old.server.execute(sql.SQL("CREATE EXTENSION old_snapshot"), old.name)
    backup = failing.restores.backups.take(old.server.superuser_url(old.name), {}, name="old")
    failing.take(
        backup, "replace", {}, "lacks 1 extension", "old_snapshot", "Install", user=servers.SUPERUSER
    )
    name = failing.target("empty")
    at = failing.restores.at(failing.server, name, servers.SUPERUSER)
    row = completed(failing.restores.take(at, backup, "empty", name, {"accept_errors": True}))
    assert "old_snapshot" in " ".join(row.warnings)
    assert number(failing.server, name, "SELECT count(*) FROM orders") == 50


@pytest.fixture
def orphaned(restores: Restores, make_source: MakeSource) -> Iterator[tuple[BackupJob, str]]:
    """A backup and the role that owned its table, which is there no more."""
    role = f"gone {uuid.uuid4().hex[:6]}"
    source = make_source(17, ORDERS)
    source.server.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))
    source.server.execute(sql.SQL("ALTER TABLE orders OWNER TO {}").format(sql.Identifier(role)), source.name)
    row = restores.backups.take(source.server.superuser_url(source.name), {}, name="orphaned")
    source.server.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)), source.name)
    source.server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
    yield row, role
    source.server.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def test_a_missing_role_and_the_ways_around_it(failing: Failing, orphaned: tuple[BackupJob, str]) -> None:
    backup, role = orphaned
    remedies = ("missing_roles: create", "map all to one role", "missing_roles: skip")
    failing.take(backup, "replace", {}, "lacks 1 role", role, *remedies)
    ways: list[tuple[dict[str, Any], str]] = [
        ({"missing_roles": "skip"}, servers.RESTORER),
        ({"no_owner": True, "no_privileges": True, "role": "app"}, "app"),
        ({"missing_roles": "create"}, role),
    ]
    for flags, owner in ways:
        name, user = failing.target("new"), servers.SUPERUSER if owner == role else servers.RESTORER
        at = failing.restores.at(failing.server, name, user)
        completed(failing.restores.take(at, backup, "new", name, flags))
        assert number(failing.server, name, "SELECT count(*) FROM orders") == 50
        assert (
            number(failing.server, name, "SELECT tableowner FROM pg_tables WHERE tablename = 'orders'")
            == owner
        )
        failing.server.drop_database(name)


def test_a_login_that_may_not_create_there(failing: Failing, backup: BackupJob) -> None:
    server, name = failing.server, failing.target("empty")
    with psycopg.connect(server.superuser_url(name), autocommit=True) as session:
        session.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(sql.Identifier(name)))
    words = ("may not create schemas and tables", "GRANT CREATE ON DATABASE")
    failing.take(backup, "empty", {}, *words, name=name, user=servers.APP)
    row = failing.take(backup, "replace", {}, "CREATEDB", name=name, user=servers.APP)
    assert "does not own the database" in (row.error or "")


# What is in the way -----------------------------------------------------------------------------


def test_objects_that_are_there_already(failing: Failing, backup: BackupJob) -> None:
    failing.before = "CREATE TABLE orders (n int); INSERT INTO orders VALUES (7)"
    row = failing.take(
        backup, "existing", {"tables": ["orders"]}, "public.orders", "already exists", "clean", "rolled back"
    )
    assert row.log


def test_data_are_only_written_over_where_that_was_asked_for(
    failing: Failing, backup: BackupJob, source: Source
) -> None:
    name = failing.target("replace")
    at = failing.restores.at(failing.server, name)
    before = sample.rows(failing.server, name)
    for mode, words in (("empty", "is not empty"), ("new", "already: 1 table")):
        failing.take(backup, mode, {}, words, "replace", name=name)
        failing.require(
            failing.restores.migrate(MigrationOrder(source.url, at, mode, name)), words, "replace"
        )
    assert sample.rows(failing.server, name) == before
    failing.take(backup, "existing", {}, "choose clean", name=name)
    with pytest.raises(InvalidFlags, match="choose clean"):
        enqueue_migration(MigrationOrder(source.url, at, "existing", name), by=failing.restores.backups.user)


# What happens meanwhile -------------------------------------------------------------------------


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done once everything has been restored, and before names are changed or it commits."""

    def plan(act: Callable[[], object]) -> None:
        begin = Load._begin

        def begin_late(load: Load, *arguments: Any) -> None:
            act()
            begin(load, *arguments)

        monkeypatch.setattr(Load, "_begin", begin_late)

    return plan


def test_a_target_that_is_dropped_meanwhile(
    failing: Failing, backup: BackupJob, meanwhile: Callable[..., None]
) -> None:
    server, name = failing.server, failing.target("replace")
    meanwhile(lambda: server.drop_database(name))
    at = failing.restores.at(server, name)
    failing.require(
        failing.restores.take(at, backup, "replace", name), "was dropped or renamed meanwhile", name
    )
    empty = failing.target("empty")
    meanwhile(lambda: server.drop_database(empty))
    at = failing.restores.at(server, empty)
    row = failing.restores.take(at, backup, "empty", empty)
    failing.require(row, empty, "was dropped or renamed meanwhile")
    assert "as it was" not in (row.error or "")
    assert not {name, empty} & databases(server)


def test_a_new_name_that_is_taken_meanwhile(
    failing: Failing, backup: BackupJob, meanwhile: Callable[..., None]
) -> None:
    server, name = failing.server, failing.target("new")
    at = failing.restores.at(server, name)
    meanwhile(lambda: failing.restores.target(server, "CREATE TABLE theirs ()", name))
    failing.require(failing.restores.take(at, backup, "new", name), "created", "meanwhile", "left alone")
    assert number(server, name, "SELECT count(*) FROM theirs") == 0


def test_a_source_that_ends_in_mid_stream(
    failing: Failing, make_source: MakeSource, meanwhile: Callable[..., None]
) -> None:
    """One table is larger than what fits into a pipe, and another one comes after it."""
    big = "CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 6000); CREATE TABLE small ()"
    source = make_source(17, big)
    end = sql.SQL("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}")
    meanwhile(lambda: source.server.execute(end.format(sql.Literal(source.name))))
    for mode in ("replace", "empty"):
        name = failing.target(mode)
        at, state = failing.restores.at(failing.server, name), sample.rows(failing.server, name)
        row = failing.restores.migrate(MigrationOrder(source.url, at, mode, name))
        failing.require(row, "The server ended the session", "as it was")
        assert sample.rows(failing.server, name) == state


# What must not be touched -----------------------------------------------------------------------


def spellings(server: servers.TestServer, name: str) -> list[str]:
    """Addresses of one database: by number, by another name of the host, by its socket, as another login."""
    socket = f"postgresql://{servers.SUPERUSER}:{quote(servers.PASSWORDS[servers.SUPERUSER], safe='')}@"
    return [
        server.superuser_url(name),
        server.superuser_url(name).replace("127.0.0.1", "localhost"),
        f"{socket}/{quote(name)}?host={quote(server.host, safe='')}&port={server.port}",
        server.url(name, servers.RESTORER),
    ]


def become(user: User, failing: Failing, backup: BackupJob) -> None:
    """Only a superuser may use sockets."""
    failing.restores.backups.user = user
    BackupJob.objects.filter(id=backup.id).update(user=user)
    backup.refresh_from_db()


def test_a_protected_database_is_not_touched_however_it_is_spelt(
    failing: Failing, backup: BackupJob, source: Source, superuser: User
) -> None:
    """It is protected by somebody else's registration."""
    name = failing.target("replace")
    url = failing.server.url(name)
    Database.objects.create(user=superuser, name="production", sealed_url=seal(url), protected=True)
    become(superuser, failing, backup)
    before = sample.rows(failing.server, name)
    for spelling in spellings(failing.server, name):
        at = failing.restores.backups.register(spelling)
        try:
            refusal = failing.restores.take(at, backup, "replace", name).error
        except ServiceError as error:  # at the door, where the address tells it
            refusal = str(error)
        assert "protected" in (refusal or "")
    order = MigrationOrder(source.url, spellings(failing.server, name)[1], "replace", name)
    failing.require(failing.restores.migrate(order), "protected")
    assert sample.rows(failing.server, name) == before


def test_the_database_that_pgbr_runs_on(failing: Failing, backup: BackupJob, superuser: User) -> None:
    own = {key: str(value) for key, value in connection.settings_dict.items()}
    login = f"{quote(own['USER'], safe='')}:{quote(own['PASSWORD'], safe='')}"
    address = f"host={quote(own['HOST'], safe='')}&port={own['PORT'] or 5432}"
    url = f"postgresql://{login}@/{quote(own['NAME'], safe='')}?{address}"
    become(superuser, failing, backup)
    at = failing.restores.backups.register(url)
    row = failing.restores.take(at, backup, "existing", own["NAME"], {"tables": ["orders"]})
    failing.require(row, "pgbr itself runs on")


def test_a_database_is_not_migrated_into_itself(failing: Failing, source: Source, superuser: User) -> None:
    failing.restores.backups.user = superuser
    for spelling in spellings(source.server, source.name)[1:]:
        order = MigrationOrder(source.url, spelling, "replace", source.name)
        failing.require(failing.restores.migrate(order), "same database", source.name)
    assert number(source.server, source.name, "SELECT count(*) FROM orders") == 50
