"""A job that comes again though all was done: its worker died between the last write to the target and the
verdict, which the tests play by taking the verdict back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.db.models.functions import Now

from jobs.models import BackupJob, QueuedJob, RestoreJob
from tests import servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Restores, completed, databases, number

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = "SELECT count(*) FROM orders"
OID = "SELECT oid FROM pg_database WHERE datname = '{}'"


@pytest.fixture
def backup(restores: Restores, shop: Source) -> BackupJob:
    return restores.backups.take(shop.url, {}, name="shop")


def again(restores: Restores, row: RestoreJob, **columns: Any) -> RestoreJob:
    """Its row after the second claim."""
    QueuedJob.objects.filter(id=row.id).update(
        status="pending", completed_at=None, claim_id=None, locked_by=None, attempts=0, stalls=1, run_at=Now()
    )
    RestoreJob.objects.filter(id=row.id).update(
        status="pending", completed_at=None, warnings=[], log="", **columns
    )
    return restores.finish(row.id)


@pytest.mark.parametrize(
    ("mode", "flags", "statements", "words"),
    [
        ("empty", {}, "", "found everything there"),
        ("empty", {"jobs": 2}, "", "right after the swap"),
        ("replace", {}, "CREATE TABLE orders AS SELECT 1 AS n", "right after the swap"),
    ],
)
def test_what_is_done_is_not_done_again_but_told(
    restores: Restores,
    backup: BackupJob,
    mode: str,
    flags: Mapping[str, Any],
    statements: str,
    words: str,
) -> None:
    server = servers.get(17)
    name = restores.target(server, statements)
    first = completed(restores.take(restores.at(server, name), backup, mode, name, flags))
    before = number(server, "postgres", OID.format(name))
    row = completed(again(restores, first))
    assert words in row.warnings[0]
    assert number(server, name, COUNT) == 50
    assert number(server, "postgres", OID.format(name)) == before
    assert (row.kept_name, row.kept_oid, row.landed_oid) == (
        first.kept_name,
        first.kept_oid,
        first.landed_oid,
    )
    assert sum(found.startswith(name) for found in databases(server)) == (2 if mode == "replace" else 1)


def test_rows_are_not_added_twice(restores: Restores, backup: BackupJob) -> None:
    server = servers.get(17)
    name = restores.target(server, "CREATE TABLE orders (n int)")
    first = completed(restores.take(restores.at(server, name), backup, "existing", name, {"data_only": True}))
    row = again(restores, first)
    assert row.status == "failed"
    assert "committed as a whole or not at all" in (row.error or "")
    assert number(server, name, COUNT) == 50


def test_what_was_written_down_before_a_swap_that_never_came_is_done_again(
    restores: Restores, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server, "CREATE TABLE orders AS SELECT 1 AS n")
    first = completed(restores.take(restores.at(server, name), backup, "replace", name))
    kept = first.kept_name
    row = completed(again(restores, first, landed_oid=1, kept_oid=2, kept_name="never"))
    assert not row.warnings
    assert row.kept_oid == first.landed_oid
    assert {kept, row.kept_name, name} <= databases(server)
