"""Real restores and migrations under real signals: never two writers on a target, and afterwards either
exactly the dump's content or the target as it was."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from jobs import services
from tests.conftest import StartWorker
from tests.proxy import Proxy
from tests.restoring.conftest import databases
from tests.waiting import until
from tests.worker.paused import BEFORE, GOODS_BYTES, TABLES, Shop, Witness
from tests.worker.test_backup_faults import dumps, scratch, tools

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES = ["--queue", "restore", "--queue", "migration", "--concurrency", "8"]
OVER = {"clean": True, "if_exists": True}
SAME_NAMES = f"{BEFORE}; CREATE TABLE notes AS SELECT 'mine' AS text"


@pytest.fixture
def proxy(shop: Shop) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", shop.server.port)) as proxy:
        yield proxy


def assert_restored(shop: Shop, job: uuid.UUID) -> None:
    found = shop.rows(shop.jobs[job])
    if shop.row(job).flags == OVER:
        assert found.pop('"public"."old"', None)
    assert found == shop.content
    assert shop.row(job).error is None


def assert_put_back(shop: Shop, before: dict[str, Any]) -> None:
    for queued in map(shop.queued, shop.jobs):
        assert (queued.status, queued.attempts, queued.stalls) == ("pending", 0, 0), queued.last_error
        assert shop.row(queued.id).status == "pending"
    assert shop.no_sessions()
    assert (shop.temporary(), scratch()) == (set(), [])
    assert shop.state() == before


def test_ended_gently_and_then_killed_in_every_way_the_next_worker_gives_the_dump_or_leaves_the_target(
    shop: Shop, start_worker: StartWorker
) -> None:
    shop.hold("index")
    again = [
        shop.restore("new"),
        shop.restore("empty"),
        shop.restore("empty", {"jobs": 2}),
        shop.restore("replace", statements=BEFORE),
        shop.restore("existing", OVER, statements=SAME_NAMES),
        shop.migrate("new"),
        shop.migrate("empty"),
    ]
    shop.hold("load", shop.jobs[again[-1]])
    once = shop.restore("existing", {"data_only": True}, statements=TABLES)
    before = shop.state()
    gentle = start_worker(*QUEUES, SHUTDOWN_GRACE_SECONDS=0.5)
    shop.wait_until_paused()
    assert gentle.terminate() == 0
    assert_put_back(shop, before)

    killed = start_worker(*QUEUES, STALE_SECONDS=2)
    shop.wait_until_paused()
    killed.signal(signal.SIGKILL, killed.python_pids())
    until(lambda: all(map(shop.sleepers, shop.jobs)), "the server goes on with what a killed tool began")
    with Witness(shop, shop.now()) as witness:
        shop.release()
        start_worker(*QUEUES, STALE_SECONDS=2)
        shop.wait_for("completed", *again)
        shop.wait_for("failed", once)
    assert not witness.trouble
    assert witness.writers >= set(again)
    assert shop.no_sessions()
    for job in again:
        assert_restored(shop, job)
    assert "Restoring a second time could double rows" in (shop.row(once).error or "")
    assert shop.rows(shop.jobs[once]) == before[shop.jobs[once]]
    assert {(queued.stalls, queued.attempts) for queued in map(shop.queued, shop.jobs)} == {(1, 1)}
    assert not shop.temporary()
    assert sum(name.startswith(shop.jobs[again[2]]) for name in databases(shop.server)) == 1
    until(lambda: not scratch() and not any(map(tools, shop.jobs)), "what the killed worker left is removed")


def test_cancelled_cut_off_or_robbed_of_one_end_they_leave_the_target_as_it_was(
    shop: Shop, proxy: Proxy, start_worker: StartWorker
) -> None:
    shop.hold("load")
    cancelled = [
        shop.restore("replace", statements=BEFORE),
        shop.restore("existing", OVER, statements=SAME_NAMES),
        shop.migrate("new"),
    ]
    cut = [shop.restore("new"), shop.restore("existing", OVER, statements=SAME_NAMES)]
    unlocked, dropped = (shop.restore("replace", statements=BEFORE) for _ in range(2))
    dumpless, sourceless = shop.migrate("replace", BEFORE), shop.migrate("empty", port=proxy.port)
    proxy.cut_after(GOODS_BYTES // 2)
    before = shop.state() | {shop.jobs[dropped]: None}
    start_worker(*QUEUES, HEARTBEAT_SECONDS=30, STALE_SECONDS=90)
    shop.wait_until_paused(*cancelled, *cut, unlocked, dropped, dumpless)
    asked = timezone.now()
    for job in cancelled:
        services.cancel_job(job, by=shop.queued(job).user)
    for job in cut:
        shop.end_sessions(job)
    shop.end_sessions(unlocked, "state <> 'active'")
    shop.server.drop_database(shop.jobs[dropped])
    for pid in dumps(dumpless):
        os.kill(pid, signal.SIGKILL)
    shop.wait_for("cancelled", *cancelled, seconds=10)
    shop.wait_for("failed", *cut, unlocked, dropped, dumpless, sourceless, seconds=20)
    for job in cancelled:
        assert ((shop.row(job).completed_at or asked) - asked).total_seconds() < 8
    until(shop.no_sessions, "no session is left")
    assert (shop.temporary(), scratch()) == (set(), [])
    assert shop.state() == before
    for job in cut:
        assert "terminating connection due to administrator command" in (shop.row(job).error or "")
    assert "held the lock" in (shop.row(unlocked).error or "")
    assert "was dropped or renamed meanwhile" in (shop.row(dropped).error or "")
    assert "pg_dump" in (shop.row(dumpless).error or "")
    assert "server closed the connection" in (shop.row(sourceless).error or "")
