"""The four ways to restore, each from a backup that pgbr made: what is there afterwards, and what is not."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from jobs.models import BackupJob, RestoreJob
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Restores, database_facts, databases, number, same, stray

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = "CREATE TABLE old AS SELECT 1 AS n"


def completed(row: RestoreJob) -> RestoreJob:
    assert (row.status, row.error) == ("completed", None)
    return row


@pytest.fixture
def sample_source(samples: Callable[[int], Source]) -> Source:
    return samples(17)


@pytest.fixture
def backup(restores: Restores, sample_source: Source) -> BackupJob:
    return restores.backups.take(sample_source.url, {}, name="sample")


def test_a_new_database_is_like_its_source_settings_and_all(
    restores: Restores, sample_source: Source, backup: BackupJob
) -> None:
    server, name = servers.get(17), restores.name()
    row = completed(restores.take(restores.at(server, name), backup, "new", name))
    same(server, sample_source, name)
    assert database_facts(server, name) == database_facts(sample_source.server, sample_source.name)
    assert row.warnings == []
    assert number(server, name, "SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'public'")
    assert not stray(server)


def test_an_empty_database_is_filled_in_one_transaction(
    restores: Restores, sample_source: Source, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server)
    oid = number(server, "postgres", f"SELECT oid FROM pg_database WHERE datname = '{name}'")
    completed(restores.take(restores.at(server, name), backup, "empty", name))
    same(server, sample_source, name)
    assert number(server, "postgres", f"SELECT oid FROM pg_database WHERE datname = '{name}'") == oid


def test_an_empty_database_is_filled_in_parallel_beside_it(
    restores: Restores, sample_source: Source, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server)
    row = completed(restores.take(restores.at(server, name), backup, "empty", name, {"jobs": 2}))
    same(server, sample_source, name)
    assert row.kept_name is None
    assert not [found for found in databases(server) if found.startswith(f"{name}_before")]


def test_a_replaced_database_is_kept_and_comes_back(
    restores: Restores, sample_source: Source, backup: BackupJob
) -> None:
    from jobs.restoring import drop_kept, undo

    server = servers.get(17)
    name = restores.target(server, BEFORE)
    row = completed(restores.take(restores.at(server, name), backup, "replace", name))
    same(server, sample_source, name)
    assert row.kept_name is not None
    assert number(server, row.kept_name, "SELECT n FROM old") == 1
    undo(row, by=row.user)
    assert number(server, name, "SELECT n FROM old") == 1
    row.refresh_from_db()
    assert row.undone_at is not None
    assert sample.rows(server, row.kept_name or "") == sample.rows(sample_source.server, sample_source.name)
    aside = row.kept_name
    drop_kept(row, by=row.user)
    assert aside not in databases(server)
    assert number(server, name, "SELECT n FROM old") == 1


def test_clean_restores_over_what_is_there(
    restores: Restores, sample_source: Source, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server, sample.DDL)
    with psycopg.connect(server.superuser_url(name), autocommit=True) as session:
        session.execute("DELETE FROM kinds; CREATE TABLE mine AS SELECT 7 AS n")
    flags = {"clean": True, "if_exists": True}
    completed(restores.take(restores.at(server, name, servers.SUPERUSER), backup, "existing", name, flags))
    assert number(server, name, "SELECT n FROM mine") == 7
    found = sample.rows(server, name)
    del found['"public"."mine"']
    assert found == sample.rows(sample_source.server, sample_source.name)


def test_what_fails_in_a_new_database_leaves_none(restores: Restores, backup: BackupJob) -> None:
    server, name = servers.get(17), restores.name()
    row = restores.take(restores.at(server, name, servers.APP), backup, "new", name)
    assert row.status == "failed"
    assert "CREATEDB" in (row.error or "")
    assert name not in databases(server)
    assert not stray(server)


def test_one_statement_that_fails_rolls_everything_back(restores: Restores, backup: BackupJob) -> None:
    server = servers.get(17)
    name = restores.target(server, BEFORE)
    row = restores.take(restores.at(server, name), backup, "existing", name, {"data_only": True})
    assert row.status == "failed"
    assert "does not exist" in (row.error or "")
    assert "rolled back" in (row.error or "")
    assert number(server, name, "SELECT count(*) FROM pg_class WHERE relname = 'kinds'") == 0


def test_accepted_errors_complete_with_what_failed(restores: Restores, backup: BackupJob) -> None:
    server = servers.get(17)
    name = restores.target(server, "CREATE TABLE cache (other int)")
    flags = {"tables": ["cache", "empty"], "accept_errors": True}
    row = completed(restores.take(restores.at(server, name), backup, "existing", name, flags))
    assert any("2 statements failed" in warning and "cache" in warning for warning in row.warnings), (
        row.warnings
    )
    assert number(server, name, "SELECT count(*) FROM pg_class WHERE relname = 'empty'") == 1
