"""Between majors: what goes without a complaint, and what is refused or attempted with its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.models import BackupJob, Upload
from jobs.restoring import MigrationOrder
from tests import sample, servers
from tests.processors.conftest import MakeSource, Source
from tests.restoring.conftest import Restores, completed, databases, number, same, stray
from tests.restoring.packing import dumped

pytestmark = pytest.mark.django_db(transaction=True)

ONLY_18 = """CREATE TABLE old (n int PRIMARY KEY); INSERT INTO old SELECT generate_series(1, 30);
CREATE TABLE new (n int, twice int GENERATED ALWAYS AS (n * 2) VIRTUAL); INSERT INTO new VALUES (1), (2);
CREATE VIEW doubled AS SELECT twice FROM new; CREATE INDEX ON old ((n + 1))"""


@pytest.fixture(scope="module")
def newer(make_source: MakeSource) -> Source:
    return make_source(18, ONLY_18)


@pytest.fixture
def backup(restores: Restores, newer: Source) -> BackupJob:
    return restores.backups.take(newer.url, {}, name="newer")


def test_into_an_older_major_is_refused_with_the_reason(
    restores: Restores, newer: Source, backup: BackupJob
) -> None:
    server, name = servers.get(16), restores.name()
    at = restores.at(server, name)
    for row in (
        restores.take(at, backup, "new", name),
        restores.migrate(MigrationOrder(newer.url, at, "new", name)),
    ):
        assert row.status == "failed"
        assert "from PostgreSQL 18, the server runs PostgreSQL 16, which is older" in (row.error or "")
        assert "accept errors" in (row.error or "")
    assert name not in databases(server)


def test_with_errors_accepted_it_is_attempted_and_what_failed_is_told(
    restores: Restores, backup: BackupJob
) -> None:
    server = servers.get(16)
    name = restores.target(server, "CREATE TABLE before ()")
    row = completed(
        restores.take(restores.at(server, name), backup, "replace", name, {"accept_errors": True})
    )
    assert number(server, name, "SELECT count(*) FROM old") == 30
    assert number(server, name, "SELECT count(*) FROM pg_indexes WHERE tablename = 'old'") == 2
    told = " ".join(row.warnings)
    assert "statements failed" in told
    assert "public.new" in told
    assert "is older" in told
    assert not stray(server)


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        (["--format=custom"], {}),
        (["--format=plain"], {"single_transaction": False}),
    ],
    ids=str,
)
def test_an_archive_of_a_newer_pg_dump_goes_back_to_its_old_server(
    restores: Restores,
    samples: Callable[[int], Source],
    tmp_path: Path,
    options: list[str],
    flags: dict[str, object],
) -> None:
    """pg_restore of its major would begin with a setting that the server does not know."""
    source = samples(16)
    upload: Upload = restores.upload(dumped(18, source, tmp_path, *options), "from a newer pg_dump")
    name = restores.target(source.server)
    at = restores.at(source.server, name)
    completed(restores.take(at, upload, "empty", name, flags))
    same(source.server, source, name)


def test_everybody_may_go_on_creating_in_public_after_a_migration_from_14(
    restores: Restores, make_source: MakeSource
) -> None:
    """As it was there; new databases are stricter since 15."""
    source = make_source(14, "CREATE TABLE t AS SELECT 1 AS n")
    server, name = servers.get(17), restores.name()
    row = completed(restores.migrate(MigrationOrder(source.url, restores.at(server, name), "new", name)))
    assert row.warnings == []
    grants = "SELECT has_schema_privilege('pg_monitor', 'public', 'CREATE')"
    assert number(server, name, grants) is True
    assert sample.rows(server, name) == sample.rows(source.server, source.name)
