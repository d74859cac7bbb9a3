"""Workers killed at random moments of a replace, in use all the while: the target is always wholly the old or
wholly the new database, and what the row says is so."""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.models import BackupJob, Database, QueuedJob, RestoreJob
from jobs.restoring.keeping import drop_kept
from tests import sample, servers
from tests.conftest import StartWorker
from tests.environment import STATE
from tests.processors.conftest import Backups, close_borrowed, in_a_thread
from tests.restoring.clients import Clients
from tests.restoring.conftest import Restores, _drop, databases, number
from tests.waiting import until
from tests.workers import RunningWorker

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("KILLS_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
# A short stale period on a busy machine may take a job from a healthy worker: not what this is about.
TIMINGS = {"HEARTBEAT_SECONDS": 0.3, "STALE_SECONDS": 2, "POLL_SECONDS": 0.3, "STALL_LIMIT": 9}
SHELF = """
CREATE TABLE shelf_{n} (id int PRIMARY KEY, text text, version int DEFAULT {version});
INSERT INTO shelf_{n} SELECT n, md5((n * {version})::text) FROM generate_series(1, 5000) AS n;
CREATE INDEX ON shelf_{n} (text);
"""
VERSION = "SELECT version FROM shelf_1 LIMIT 1"
SWAP_SECONDS = 0.1  # from what is written before the swap to the verdict, and some more

Content = dict[str, tuple[Any, ...]]


@dataclass
class Range:
    """One target, in use, that is replaced by one version after the other."""

    server: servers.TestServer
    restores: Restores
    dice: random.Random
    start: Callable[[], RunningWorker]
    worker: RunningWorker
    backups: list[BackupJob]
    contents: list[Content]
    name: str
    database: Database
    seconds: float = 1.0  # a replace that nobody disturbs
    tally: Counter[str] = field(default_factory=Counter)

    def shoot(self, number: int) -> None:
        """One replace, killed; then the next worker, until there is a verdict."""
        old, new = self.contents[number % 2], self.contents[(number + 1) % 2]
        job = self.restores.order(self.database, self.backups[(number + 1) % 2], "replace", self.name)
        until(lambda: QueuedJob.objects.get(id=job).status != "pending", "the job is claimed")
        moment = self.wait_for_the_moment(job)
        self.worker.signal(
            signal.SIGKILL,
            self.worker.pids() if self.dice.random() < 0.5 else self.worker.python_pids(),
        )
        self.worker.process.wait(20)
        at_once = sample.rows(self.server, self.name)
        assert at_once in (old, new), "half of a database"
        queued = QueuedJob.objects.get(id=job)
        self.worker = self.start()
        until(lambda: QueuedJob.objects.get(id=job).completed_at, "there is a verdict", seconds=60)
        row = RestoreJob.objects.get(id=job)
        self.check(row, old, new)
        resumed = any("right after the swap" in warning for warning in row.warnings)
        assert resumed == (at_once == new and queued.status == "active")
        place = "before the swap" if at_once == old else "between swap and verdict" if resumed else "after it"
        self.tally[f"{moment}: {place}"] += 1
        kept = row.kept_name
        drop_kept(row, by=row.user)
        assert kept not in databases(self.server)

    def wait_for_the_moment(self, job: uuid.UUID) -> str:
        if self.dice.random() < 0.5:
            time.sleep(self.dice.uniform(0, 1.1 * self.seconds))
            return "at any time"
        while not is_about_to_swap(job):
            time.sleep(0.002)
        time.sleep(self.dice.uniform(0, SWAP_SECONDS))
        return "around the swap"

    def check(self, row: RestoreJob, old: Content, new: Content) -> None:
        assert (row.status, row.error) == ("completed", None)
        assert sample.rows(self.server, self.name) == new
        assert row.kept_name is not None
        assert sample.rows(self.server, row.kept_name) == old
        oids = "SELECT oid FROM pg_database WHERE datname = '{}'"
        assert number(self.server, "postgres", oids.format(row.kept_name)) == row.kept_oid
        assert number(self.server, "postgres", oids.format(self.name)) == row.landed_oid
        assert row.temporary_name is None
        assert not [found for found in databases(self.server) if found.startswith(f"pgbr_{row.id.hex}")]
        assert not sessions(self.server, row.id)


def shelves(version: int) -> str:
    return "".join(SHELF.format(n=n, version=version) for n in range(1, 9))


def is_about_to_swap(job: uuid.UUID) -> bool:
    row = RestoreJob.objects.filter(id=job).values("landed_oid", "completed_at").first()
    return row is not None and (row["landed_oid"] is not None or row["completed_at"] is not None)


def sessions(server: servers.TestServer, job: uuid.UUID) -> int:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbr/{job}'"
    found: int = number(server, "postgres", query)
    return found


@pytest.fixture
def range_(user: User, start_worker: StartWorker, tmp_path: Path) -> Iterator[Range]:
    server = servers.get(17)
    restores = Restores(Backups(user, STATE))
    backups, contents = [], []
    for version in (1, 2):
        home = restores.target(server, shelves(version), f"version {version} {uuid.uuid4().hex[:8]}")
        backups.append(restores.backups.take(server.url(home), {}, name=home))
        contents.append(sample.rows(server, home))
    name = restores.target(server, shelves(1))

    def start() -> RunningWorker:
        return start_worker("--queue", "restore", **TIMINGS)

    dice = random.Random(SEED)  # noqa: S311 - to be repeated, not to be secret
    database = restores.at(server, name)
    yield Range(server, restores, dice, start, start(), backups, contents, name, database)
    in_a_thread(close_borrowed)
    for _, made in restores.made:
        _drop(server, made)


def seconds_of(row: RestoreJob) -> float:
    began, ended = row.started_at, row.completed_at
    assert isinstance(began, datetime)
    assert isinstance(ended, datetime)
    return (ended - began).total_seconds()


def test_fifty_kills_leave_wholly_old_or_wholly_new(range_: Range) -> None:
    print(f"\nKILLS_SEED={SEED}")
    version = number(range_.server, range_.name, VERSION)
    assert version == 1
    # Undisturbed ones first: how long it takes, and that the next kill begins with the first version.
    for which in (1, 0):
        job = range_.restores.order(range_.database, range_.backups[which], "replace", range_.name)
        until(lambda job=job: QueuedJob.objects.get(id=job).completed_at, "it is replaced")  # type: ignore[misc]
        row = RestoreJob.objects.get(id=job)
        range_.check(row, range_.contents[1 - which], range_.contents[which])
        range_.seconds = seconds_of(row)
        drop_kept(row, by=row.user)
    with Clients(range_.server, range_.name, VERSION, 2) as clients:
        for shot in range(KILLS):
            range_.shoot(shot)
            assert all(set(seen) <= {1, 2} for seen in clients.answers)
    print(f"a replace takes {range_.seconds:.1f} s; killed {KILLS} times, {dict(range_.tally)}")
    print(f"clients were away for {clients.longest_gap:.2f} s at most")
    assert sum(range_.tally.values()) == KILLS
