"""Restores and migrations whose worker sleeps through the loss of its job, or whose server goes away."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import psycopg
import pytest
from django.contrib.auth.models import User

from jobs.models import TimelineLine
from jobs.processors.at_target import creation
from jobs.restoring.settling import settle_unsettled
from tests import servers
from tests.conftest import StartWorker
from tests.processors.conftest import in_a_thread
from tests.restoring.conftest import databases
from tests.waiting import until
from tests.worker.paused import BEFORE, Shop, Witness, opened
from tests.worker.test_restore_faults import OVER, QUEUES, SAME_NAMES, assert_restored

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]


SLOW_TO_VACUUM = """
CREATE TABLE filled (n int) WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1);
INSERT INTO filled SELECT generate_series(1, 100000);
DELETE FROM filled;
"""


@pytest.fixture
def lone_shop(transactional_db: None, user: User) -> Iterator[Shop]:
    """On a server of its own, which knows prepared transactions."""
    server = servers.private(17)
    try:
        with psycopg.connect(server.superuser_url(), autocommit=True) as session:
            session.execute("ALTER SYSTEM SET max_prepared_transactions = 3")
        server.stop("fast")
        server.start()
        with opened(server, user) as shop:
            yield shop
    finally:
        servers.discard(server)


def test_frozen_workers_that_wake_neither_write_nor_swap_names(shop: Shop, start_worker: StartWorker) -> None:
    shop.hold("index")
    shop.restore("new")
    shop.restore("empty")
    shop.restore("replace", statements=BEFORE)
    shop.restore("existing", OVER, statements=SAME_NAMES)
    shop.migrate("replace", BEFORE)
    first = start_worker(*QUEUES, STALE_SECONDS=2)
    shop.wait_until_paused()
    tree = first.pids()
    first.signal(signal.SIGSTOP, tree)
    with Witness(shop, shop.now()) as witness:
        start_worker(*QUEUES, STALE_SECONDS=2)
        until(lambda: all(shop.queued(job).stalls == 1 for job in shop.jobs), "the jobs are taken back")
        until(lambda: all(shop.sleepers(job, witness.mark) for job in shop.jobs), "they run again")
        first.signal(signal.SIGCONT, tree)
        until(lambda: first.text().count("claim lost") == len(shop.jobs), "the zombie has given up")
        shop.wake()
        shop.wait_for("completed")
    assert not witness.trouble
    for job in shop.jobs:
        assert_restored(shop, job)
        assert TimelineLine.objects.filter(job_id=job, event="completed").count() == 1
    until(shop.no_sessions, "no session is left")
    assert not shop.temporary()


def test_a_server_that_crashes_has_its_targets_as_they_were_when_it_is_back(
    lone_shop: Shop, start_worker: StartWorker
) -> None:
    shop = lone_shop
    shop.hold("index")
    shop.restore("new")
    shop.restore("empty")
    shop.restore("empty", {"jobs": 2})
    shop.restore("replace", statements=BEFORE)
    shop.restore("existing", OVER, statements=SAME_NAMES)
    shop.migrate("replace", BEFORE)
    before = shop.state()
    start_worker(*QUEUES)
    shop.wait_until_paused()
    shop.server.stop()
    time.sleep(3)
    shop.server.start()
    shop.wait_for("failed")
    assert shop.state() == before
    in_a_thread(settle_unsettled)
    assert not shop.temporary()
    assert all(shop.row(job).temporary_name is None for job in shop.jobs)
    until(shop.no_sessions, "no session is left")
    for job in shop.jobs:
        error = shop.row(job).error or ""
        assert "closed the connection" in error or "held the lock" in error or "crash" in error, error
    shop.release()
    again = shop.restore("replace", statements=BEFORE)
    shop.wait_for("completed", again)
    assert_restored(shop, again)


def test_a_prepared_transaction_in_the_old_database_is_told_and_nothing_is_changed(
    lone_shop: Shop, start_worker: StartWorker
) -> None:
    shop = lone_shop
    shop.hold("index")
    job = shop.restore("replace", statements=BEFORE)
    before = shop.state()
    start_worker(*QUEUES)
    shop.wait_until_paused()
    with psycopg.connect(shop.server.superuser_url(shop.jobs[job]), autocommit=True) as session:
        for statement in ("BEGIN", "INSERT INTO old VALUES (2)", "PREPARE TRANSACTION 'held'"):
            session.execute(statement)
        shop.wake()
        shop.wait_for("failed")
        session.execute("ROLLBACK PREPARED 'held'")
    assert 'the prepared transaction "held"' in (shop.row(job).error or "")
    assert (shop.state(), shop.temporary()) == (before, set())


def test_a_database_that_is_being_vacuumed_is_dropped_all_the_same(lone_shop: Shop) -> None:
    """By a login that is no superuser, as most are: right after a restore there is much to be analyzed."""
    server = lone_shop.server
    server.create_database("loaded", servers.RESTORER)
    with psycopg.connect(server.superuser_url(), autocommit=True) as root:
        root.execute("ALTER SYSTEM SET autovacuum_naptime = 1")
        root.execute("SELECT pg_reload_conf()")
        with psycopg.connect(server.superuser_url("loaded"), autocommit=True) as session:
            session.execute(SLOW_TO_VACUUM)
        vacuumed = "SELECT 1 FROM pg_stat_activity WHERE datname = 'loaded' AND query LIKE 'autovacuum:%'"
        until(lambda: root.execute(vacuumed).fetchone(), "it is being vacuumed")
        with psycopg.connect(server.url("postgres", servers.RESTORER), autocommit=True) as orders:
            creation.drop(orders, "loaded")
        assert "loaded" not in databases(server)
