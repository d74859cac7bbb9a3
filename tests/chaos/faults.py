"""What can be done to three workers, their database, their stores and the server they back up."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from pgbr import embedded
from tests import s3server
from tests.environment import HOME
from tests.proxy import Proxy
from tests.workers import RunningWorker, database_url

TIMINGS = {
    "HEARTBEAT_SECONDS": 0.5,
    "STALE_SECONDS": 5,
    "POLL_SECONDS": 0.5,
    "SHUTDOWN_GRACE_SECONDS": 3,
    "STALL_LIMIT": 6,
    "STORAGE_RETRY_SECONDS": 20,
}
WORKERS = 3
WRITING = "-c default_transaction_read_only=off"


class House:
    """The workers, and the proxies between them and what they need. `heal` ends all trouble."""

    timings: Mapping[str, Any] = TIMINGS

    def __init__(self, logs: Path, dice: random.Random, source: str) -> None:
        self.dice = dice
        self.database = Proxy(("127.0.0.1", int(connection.settings_dict["PORT"])))
        self.store = Proxy(("127.0.0.1", s3server.shared().port))
        self.done: list[str] = []
        self._logs = logs
        self._source = source
        self._frozen: set[int] = set()
        self._workers: list[RunningWorker] = []
        self._started = 0
        self._faults: list[Callable[[], None]] = [
            self.kill_process, self.kill_process, self.kill_process, self.kill_worker, self.kill_supervisor,
            self.freeze, self.freeze, self.thaw, self.terminate_worker, self.terminate_group, self.hang_up,
            self.end_sessions, self.end_sessions, self.lose_commit, self.lose_commit, self.lose_claim,
            self.cut_database, self.stall_database, self.crash_database, self.read_only, self.end_dumps,
            self.busy_store, self.lose_store_answer, self.cut_store, self.stall_store, self.crash_store,
        ]  # fmt: skip

    def anything(self) -> None:
        """One fault, chosen by the dice."""
        fault = self.dice.choice(self._faults)
        self.done.append(fault.__name__)
        fault()

    def fill(self) -> None:
        """As a service manager does: a worker that is gone is started again."""
        self._workers = [worker for worker in self._workers if worker.process.poll() is None]
        while len(self._workers) < WORKERS:
            self._started += 1
            log = self._logs / f"worker-{self._started}.log"
            port = f":{connection.settings_dict['PORT']}/"
            url = database_url().replace(port, f":{self.database.port}/")
            self._workers.append(
                RunningWorker(
                    log, ["--queue", "backup"], noop=False, environment={**self.timings, "DATABASE_URL": url}
                )
            )

    def heal(self) -> None:
        self.database.heal()
        self.store.heal()
        self.thaw()
        self._read_only("off")

    def close(self) -> None:
        for worker in self._workers:
            worker.kill_all()
        self.database.refuse()
        self.store.refuse()

    def pause(self, longest: float) -> None:
        time.sleep(self.dice.uniform(0, longest))

    # Processes -----------------------------------------------------------------------------------

    def kill_process(self) -> None:
        _signal(self.dice.choice(self._pids() or [0]), signal.SIGKILL)

    def kill_supervisor(self) -> None:
        self.dice.choice(self._workers).process.kill()

    def kill_worker(self) -> None:
        self.dice.choice(self._workers).kill_all()

    def freeze(self) -> None:
        for pid in self._some_pids():
            self._frozen.add(pid)
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._frozen:
            _signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def terminate_worker(self) -> None:
        worker = self.dice.choice(self._workers)
        worker.process.send_signal(signal.SIGTERM)
        if self.dice.random() < 0.5:
            self.pause(3)
            worker.process.send_signal(signal.SIGTERM)

    def terminate_group(self) -> None:
        self.dice.choice(self._workers).signal(signal.SIGTERM)

    def hang_up(self) -> None:
        self.dice.choice(self._workers).signal(signal.SIGHUP)

    def _some_pids(self) -> list[int]:
        if self.dice.random() < 0.5:
            return self.dice.choice(self._workers).pids()
        return [self.dice.choice(self._pids() or [0])]

    def _pids(self) -> list[int]:
        return [pid for worker in self._workers for pid in worker.pids()]

    # The queue's database ------------------------------------------------------------------------

    def end_sessions(self) -> None:
        _execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'pgbr' AND pid <> pg_backend_pid() AND random() < 0.5"
        )

    def lose_commit(self) -> None:
        self.database.lose_answer(b"COMMIT")

    def lose_claim(self) -> None:
        self.database.lose_answer(b"WITH due AS MATERIALIZED")

    def cut_database(self) -> None:
        self.database.refuse()
        self.pause(4)
        self.database.heal()

    def stall_database(self) -> None:
        self.database.stall()
        self.pause(8)
        self.database.cut()
        self.database.heal()

    def crash_database(self) -> None:
        os.kill(embedded.status(HOME).pid or 0, signal.SIGQUIT)  # an immediate stop
        self.pause(3)
        embedded.ensure(HOME)

    def read_only(self) -> None:
        """As a failover looks: new sessions cannot write for a while."""
        self._read_only("on")
        self.end_sessions()
        self.pause(3)
        self._read_only("off")
        self.end_sessions()

    def _read_only(self, value: str) -> None:
        name = connection.settings_dict["NAME"]
        _execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}')

    # The store and the source --------------------------------------------------------------------

    def busy_store(self) -> None:
        self.store.answer_503(self.dice.randrange(1, 5))

    def lose_store_answer(self) -> None:
        self.store.lose_answer(self.dice.choice([b"PUT ", b"POST ", b"DELETE ", b"uploads", b"uploadId"]))

    def cut_store(self) -> None:
        self.store.refuse()
        self.pause(3)
        self.store.heal()

    def stall_store(self) -> None:
        self.store.stall()
        self.pause(3)
        self.store.heal()

    def crash_store(self) -> None:
        s3server.shared().restart()

    def end_dumps(self) -> None:
        with psycopg.connect(self._source, autocommit=True) as session:
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'pgbr/%' AND random() < 0.3"
            )


@contextmanager
def direct() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Past the proxy, and past Django's connection, which dies with the server."""
    embedded.ensure(HOME)
    with psycopg.connect(
        database_url(), autocommit=True, application_name="soak", options=WRITING
    ) as session:
        yield session


def _execute(statement: str) -> None:
    with direct() as session:
        session.execute(statement.encode())


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, number)
