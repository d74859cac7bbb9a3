"""`manage.py run`: two children that live and end together."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.management.serve import address
from jobs.models import WorkerProcess
from pgbr.ports import free_port
from tests.commands.conftest import Call
from tests.waiting import until
from tests.workers import CHECKOUT, descendants, process_environment

pytestmark = pytest.mark.django_db(transaction=True)


class Running:
    def __init__(self, log: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run"],
                cwd=CHECKOUT,
                env=process_environment(BASE_URL=self.url),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def said(self) -> str:
        return self._log.read_text()

    def until_ready(self) -> list[int]:
        """The processes it consists of, once the dashboard answers and a worker is there."""
        until(lambda: "Ctrl-C stops" in self.said(), "the dashboard answers")
        until(lambda: WorkerProcess.objects.filter(role="backup").exists(), "the worker signs on")
        return descendants(self.process.pid)

    def children(self) -> dict[str, int]:
        found = {}
        for pid in descendants(self.process.pid):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            command = Path(f"/proc/{pid}/cmdline").read_text()
            if parent == self.process.pid:
                found["worker" if "runworker" in command else "dashboard"] = pid
        return found


@pytest.fixture
def running(transactional_db: None, tmp_path: Path) -> Iterator[Running]:
    started = Running(tmp_path / "run.log")
    yield started
    if started.process.poll() is None:
        started.process.terminate()
        started.process.wait(60)


def all_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_it_serves_tells_how_to_log_in_and_leaves_no_orphan(running: Running) -> None:
    pids = running.until_ready()
    with urllib.request.urlopen(f"{running.url}/admin/login/") as answer:
        assert answer.status == 200
    assert f"Dashboard: {running.url}" in running.said()
    assert f"{running.url}/login/" in running.said()
    assert len(pids) > 4

    running.process.send_signal(signal.SIGINT)

    assert running.process.wait(60) == 0
    until(lambda: all_gone(pids), "all processes are gone")


def test_the_end_of_one_is_the_end_of_both(running: Running) -> None:
    pids = running.until_ready()

    subprocess.run(["kill", "-KILL", str(running.children()["dashboard"])], check=True)

    assert running.process.wait(60) == 1
    assert "The dashboard ended by itself" in running.said()
    until(lambda: all_gone(pids), "all processes are gone")


@pytest.mark.skipif(sys.platform != "linux", reason="needs setpriv")
def test_killed_it_takes_both_along(running: Running) -> None:
    pids = running.until_ready()

    running.process.kill()
    running.process.wait()

    until(lambda: all_gone(pids), "all processes are gone", seconds=60)


def test_a_taken_port_is_named_before_anything_starts(manage: Call) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        said = manage("run", BASE_URL=f"http://127.0.0.1:{port}")

    assert said.code == 2
    assert f"127.0.0.1:{port} is taken" in said.err


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://127.0.0.1:8001", ("127.0.0.1", 8001)),
        ("http://localhost:8002", ("127.0.0.1", 8002)),
        ("https://pgbr.example.com", ("127.0.0.1", 8000)),
        ("http://10.0.0.7:9000", ("127.0.0.1", 8000)),
    ],
)
def test_it_listens_where_the_base_url_says_if_that_is_this_machine(
    base_url: str, expected: tuple[str, int]
) -> None:
    assert address(base_url) == expected
