"""--wait, with a real worker on a real database."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from jobs.management import listing
from jobs.models import BackupJob, QueuedJob
from tests.commands.conftest import Call
from tests.conftest import StartWorker
from tests.waiting import until
from tests.workers import CHECKOUT, process_environment

pytestmark = pytest.mark.django_db(transaction=True)


def test_waiting_ends_with_0_and_the_finished_job(manage: Call, shop: str, start_worker: StartWorker) -> None:
    start_worker("--queue", "backup")

    said = manage("enqueue_backup", shop, "--wait", "--json")

    (printed,) = said.objects
    backup = BackupJob.objects.get()
    assert said.code == 0
    assert (printed["id"], printed["status"]) == (str(backup.id), "completed")
    assert (printed["size"], printed["sha256"]) == (backup.size, backup.sha256)
    assert printed["storage_key"] == backup.storage_key
    assert printed["completed_at"] == backup.completed_at.isoformat() if backup.completed_at else False


def test_waiting_for_a_job_that_fails_ends_with_1(manage: Call, shop: str, start_worker: StartWorker) -> None:
    start_worker("--queue", "backup")

    said = manage("enqueue_backup", shop, "--table", "nosuchtable", "--wait", "--json")

    (printed,) = said.objects
    assert (said.code, printed["status"]) == (1, "failed")
    assert "nosuchtable" in printed["error"]


# A run in the background of a shell inherits that SIGINT is ignored, and so would all it starts.
HEEDING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def start_waiting(*arguments: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HEEDING, "manage.py", *arguments, "--wait"],
        cwd=CHECKOUT,
        env=process_environment(COLUMNS=100),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def test_without_a_worker_it_says_so_and_waits_on(shop: str, start_worker: StartWorker) -> None:
    waiting = start_waiting("enqueue_backup", shop, "--json")
    assert waiting.stdout is not None
    assert waiting.stderr is not None
    try:
        assert b"No worker is running for the backup queue" in waiting.stderr.readline()
        assert waiting.poll() is None
        start_worker("--queue", "backup")
        assert waiting.wait(60) == 0
        assert b'"status": "completed"' in waiting.stdout.read()
    finally:
        waiting.kill()
        waiting.communicate()


def test_a_cancelled_job_ends_the_wait_with_1(manage: Call, shop: str) -> None:
    waiting = start_waiting("enqueue_backup", shop)
    assert waiting.stdout is not None
    try:
        job_id = waiting.stdout.readline().decode().split()[-1]
        assert manage("cancel_job", job_id).code == 0
        assert waiting.wait(30) == 1
        assert b"cancelled: Cancelled by root." in waiting.stdout.read()
    finally:
        waiting.kill()
        waiting.communicate()


def test_ctrl_c_ends_the_wait_but_not_the_job(shop: str) -> None:
    waiting = start_waiting("enqueue_backup", shop)
    assert waiting.stderr is not None
    try:
        assert b"No worker is running" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(30) == 130
        assert b"The job goes on" in waiting.stderr.read()
        assert QueuedJob.objects.get().status == "pending"
    finally:
        waiting.kill()
        waiting.communicate()


def test_a_terminal_gets_a_bar(shop: str, start_worker: StartWorker) -> None:
    start_worker("--queue", "backup")
    until(lambda: listing.worker_is_alive("backup"), "the worker signs on")
    ours, theirs = pty.openpty()
    waiting = start_waiting("enqueue_backup", shop, stderr=theirs)
    os.close(theirs)
    try:
        assert waiting.wait(60) == 0
        drawn = _all_of(ours)
        assert "\r\x1b[K" in drawn
        assert "\n" not in drawn
        assert waiting.stdout is not None
        assert b"completed in" in waiting.stdout.read()
    finally:
        waiting.kill()
        waiting.communicate()
        os.close(ours)


def _all_of(terminal: int) -> str:
    drawn = b""
    with suppress(OSError):  # Linux says EIO once the other side is closed
        while chunk := os.read(terminal, 65536):
            drawn += chunk
    return drawn.decode()
