"""The queue's own database stops under a busy worker, and comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jobs.secrets import seal
from pgbr import embedded
from tests.waiting import until
from tests.worker.conftest import DATA_BYTES
from tests.workers import CHECKOUT, RunningWorker, process_environment

# `make chaos` gives 20.
OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "6"))


class House:
    """An instance of its own: state folder, embedded server, one user, one slow database to back up."""

    def __init__(self, home: Path, source: str) -> None:
        self.home = home
        self.environment = {"PGBR_HOME": str(home), "DATABASE_URL": ""}
        embedded.ensure(home)
        self.manage("migrate", "--verbosity=0")
        self.user = self.value(
            "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
            " last_name, email, date_joined)"
            " VALUES ('ada', '!', true, true, true, '', '', '', now()) RETURNING id"
        )
        self.database = self.value(
            "INSERT INTO databases (id, user_id, name, sealed_url, sslmode, ca_certificate,"
            " client_certificate, sealed_client_key, protected, watch, watch_include, watch_exclude,"
            " bandwidth_limit)"
            " VALUES (gen_random_uuid(), %s, 'slow', %s, '', '', '', '', false, false, '[]', '[]', %s)"
            " RETURNING id",
            self.user,
            seal(source),
            int(DATA_BYTES / (OUTAGE_SECONDS + 8)),
        )

    def manage(self, *arguments: str) -> None:
        environment = process_environment(**self.environment)
        subprocess.run([sys.executable, "manage.py", *arguments], cwd=CHECKOUT, env=environment, check=True)

    def value(self, statement: str, *parameters: Any) -> Any:
        connection = embedded.ensure(self.home)
        with psycopg.connect(connection.url, autocommit=True) as session:
            row = session.execute(statement, parameters).fetchone()
            return row[0] if row else None

    def enqueue(self, queue: str) -> uuid.UUID:
        return self.value(  # type: ignore[no-any-return]
            "INSERT INTO job_queue (id, queue, user_id, payload, status, attempts, max_attempts, stalls)"
            " VALUES (gen_random_uuid(), %s, %s, jsonb_build_object('database_id', %s::text, 'flags',"
            " '{\"compress\": \"none\"}'::jsonb), 'pending', 0, 1, 0) RETURNING id",
            queue,
            self.user,
            self.database,
        )

    def status(self, job: uuid.UUID) -> str:
        return str(self.value("SELECT status FROM job_queue WHERE id = %s", job))


@pytest.fixture
def house(slow_source: str) -> Iterator[House]:
    home = Path(tempfile.mkdtemp(prefix="pgbr-o-", dir="/tmp"))
    home.chmod(0o755)
    yield House(home, slow_source)
    embedded.stop(home)
    subprocess.run(["rm", "-rf", str(home)], check=True)


def test_an_outage_of_postgres_costs_no_job_no_dump_and_no_supervisor(house: House, tmp_path: Path) -> None:
    worker = RunningWorker(tmp_path / "worker.log", [], noop=False, environment=house.environment)
    try:
        job = house.enqueue("backup")
        until(
            lambda: house.value(
                "SELECT (progress->>'bytes')::bigint > 0 FROM backup_jobs WHERE id = %s", job
            ),
            "the dump runs",
        )
        pid, upkeep = worker.pid, worker.child("upkeep")
        os.kill(embedded.status(house.home).pid or 0, signal.SIGQUIT)  # an immediate stop
        until(lambda: "no contact with the database" in worker.text(), "the worker notices")
        os.kill(upkeep, signal.SIGKILL)
        stay_away(OUTAGE_SECONDS)
        embedded.ensure(house.home)
        later = [house.enqueue(queue) for queue in ("backup", "restore", "migration")]
        until(
            lambda: all(house.status(job) != "pending" for job in later),
            "all queues consume again",
            seconds=15,
        )
        until(
            lambda: house.status(job) == "completed",
            "the dump that ran through the outage completes",
            seconds=60,
        )
        assert house.value("SELECT sum(stalls)::int FROM job_queue") == 0
        assert (
            house.value("SELECT count(*) FROM job_timeline WHERE event = 'claimed' AND job_id = %s", job) == 1
        )
        assert (worker.pid, worker.process.poll()) == (pid, None)
        assert worker.text().count("started the ") < 15
    except AssertionError:
        print(worker.text())
        raise
    finally:
        worker.kill_all()


def stay_away(seconds: float) -> None:
    """The outage itself: its length is what is being tested, not a wait for something."""
    signal.sigtimedwait([], seconds)
