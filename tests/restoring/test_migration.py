"""From one server to another in one operation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.models import MigrationJob
from jobs.restoring import MigrationOrder, check_migration
from tests import servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Restores, databases, number, same, stray

pytestmark = pytest.mark.django_db(transaction=True)


def completed(row: MigrationJob) -> MigrationJob:
    assert (row.status, row.error) == ("completed", None)
    return row


@pytest.fixture
def source(samples: Callable[[int], Source]) -> Source:
    return samples(17)


@pytest.mark.parametrize("staged", [False, True])
def test_a_new_database_on_another_server_is_like_the_source(
    restores: Restores, source: Source, staged: bool
) -> None:
    server, name = servers.get(18), restores.name()
    # Not every role of the source is known to the other server.
    flags = {"missing_roles": "create"}
    target = restores.at(server, name, servers.SUPERUSER)
    order = MigrationOrder(source.server.superuser_url(source.name), target, "new", name, {}, flags, staged)
    row = completed(restores.migrate(order))
    assert row.size
    assert row.size > 50_000 or staged
    assert source.url not in str(MigrationJob.objects.values().get(id=row.id))
    assert number(server, name, "SELECT count(*) FROM kinds") == 41
    assert not stray(server)
    assert not restores.backups.scratch()


def test_a_replacing_migration_keeps_what_was_there(restores: Restores, source: Source) -> None:
    server = servers.get(17)
    name = restores.target(server, "CREATE TABLE old AS SELECT 1 AS n")
    row = completed(restores.migrate(MigrationOrder(source.url, restores.at(server, name), "replace", name)))
    same(server, source, name)
    assert number(server, row.kept_name or "", "SELECT n FROM old") == 1


def test_into_itself_is_refused_however_it_is_spelled(restores: Restores, source: Source) -> None:
    server = source.server
    elsewhere = server.url(source.name, servers.RESTORER).replace("127.0.0.1", "localhost")
    row = restores.migrate(MigrationOrder(source.url, elsewhere, "replace", source.name))
    assert row.status == "failed"
    assert "same database" in (row.error or "")
    assert source.name in databases(server)


def test_the_check_tells_what_would_be_met(restores: Restores, source: Source) -> None:
    server = servers.get(17)
    name = restores.target(server, "CREATE TABLE old AS SELECT 1 AS n")
    order = MigrationOrder(source.url, restores.at(server, name), "empty", name)
    check = check_migration(order, by=restores.backups.user)
    assert check.stops
    assert check.suggested_mode == "replace"
    assert check.facts.tables == 1
