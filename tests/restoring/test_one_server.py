"""Source and target of a migration on one server, with one login: what the job holds there for each."""

from __future__ import annotations

import psycopg
from django.db.models.functions import Now

from jobs.management import listing
from jobs.models import MigrationJob, QueuedJob
from jobs.processors import slots
from jobs.restoring import MigrationOrder, check_migration, enqueue_migration
from jobs.restoring.checking import APPLICATION
from tests import servers
from tests.processors.conftest import Source

from .conftest import Restores, number


def order_of(restores: Restores, shop: Source) -> MigrationOrder:
    source = restores.backups.register(shop.url, max_parallel=1)
    name = restores.target(shop.server)
    return MigrationOrder(source, restores.at(shop.server, name, servers.APP), "empty", name)


def test_a_migration_waits_for_its_sources_turn_and_then_holds_that_beside_the_targets_lock(
    restores: Restores, shop: Source
) -> None:
    order = order_of(restores, shop)
    job_id = enqueue_migration(order, by=restores.backups.user)
    with psycopg.connect(shop.server.superuser_url()) as other:
        other.execute("SELECT pg_advisory_lock(%s, 1)", [slots.CLASS])
        restores.run("migration").join(120)
    queued = QueuedJob.objects.get(id=job_id)
    assert (queued.status, queued.attempts) == ("pending", 0)
    assert "1 dump is running" in (queued.last_error or "")
    assert listing.find(queued.user, job_id).error == queued.last_error
    QueuedJob.objects.filter(id=job_id).update(run_at=Now())
    restores.run("migration").join(120)
    row = MigrationJob.objects.get(id=job_id)
    assert (row.status, row.error) == ("completed", None)
    assert number(shop.server, order.target_name, "SELECT count(*) FROM orders") == 50


def test_a_check_leaves_others_checks_alone(restores: Restores, shop: Source) -> None:
    order = order_of(restores, shop)
    with psycopg.connect(shop.server.url("postgres"), application_name=APPLICATION) as other:
        assert not check_migration(order, by=restores.backups.user).stops
        other.execute("SELECT 1")
