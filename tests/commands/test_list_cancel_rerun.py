from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from jobs.management import follow, listing
from jobs.models import BackupJob, QueuedJob
from tests.commands.conftest import Call
from tests.conftest import Enqueue
from tests.workers import CHECKOUT, process_environment


def a_backup(user: User, **columns: Any) -> BackupJob:
    done = {"storage_key": "shop/x.dump", "size": 1_250_000, "sha256": "0" * 64, "status": "completed"}
    return BackupJob.objects.create(user=user, database_name="shop", **(done | columns))


def test_waiting_and_ended_jobs_are_listed(call: Call, superuser: User, enqueue: Enqueue) -> None:
    ended = a_backup(superuser)
    waiting = enqueue(payload={"database_name": "later"})

    said = call("list_jobs", "--json")

    first, second = said.objects
    assert (first["id"], first["status"], first["database"]) == (str(waiting.id), "pending", "later")
    assert (second["id"], second["status"], second["size"]) == (str(ended.id), "completed", 1_250_000)


def test_a_claimed_job_is_listed_once(call: Call, superuser: User, enqueue: Enqueue) -> None:
    held = {"claim_id": uuid.uuid4(), "locked_by": "w", "heartbeat_at": "2026-01-01T00:00Z"}
    job = enqueue(status="active", **held)
    BackupJob.objects.create(id=job.id, user=superuser, database_name="shop", status="running")

    (printed,) = call("list_jobs", "--json").objects

    assert (printed["id"], printed["status"]) == (str(job.id), "running")


@pytest.mark.parametrize("look", ["find", "newest"])
def test_a_job_that_ends_while_we_look_is_seen(superuser: User, enqueue: Enqueue, look: str) -> None:
    job = enqueue()
    looks: list[str] = []

    def end_after_the_first(execute: Callable[..., Any], query: str, *rest: Any) -> Any:
        answer = execute(query, *rest)
        looks.append(query)
        if len(looks) == 1:
            a_backup(superuser, id=job.id)
            QueuedJob.objects.filter(id=job.id).update(status="completed")
        return answer

    with connection.execute_wrapper(end_after_the_first):
        if look == "find":
            seen = listing.find(superuser, job.id)
        else:
            (seen,) = listing.newest(superuser, "backup", None, 10)

    assert (seen.id, seen.status) == (job.id, "completed")


def test_filters_narrow_the_list(call: Call, superuser: User, enqueue: Enqueue) -> None:
    failed = a_backup(superuser, status="failed", error="disk full", size=None, storage_key=None, sha256=None)
    a_backup(superuser)
    enqueue(queue="restore")

    assert [row["id"] for row in call("list_jobs", "--json", "--status=failed").objects] == [str(failed.id)]
    assert [row["queue"] for row in call("list_jobs", "--json", "--queue=restore").objects] == ["restore"]
    assert [row["status"] for row in call("list_jobs", "--json", "--status=pending").objects] == ["pending"]
    assert len(call("list_jobs", "--json", "--limit=2").objects) == 2


def test_the_table_shows_why_a_job_failed(call: Call, superuser: User) -> None:
    a_backup(superuser, status="failed", error="disk full\x1b[31m", size=None, storage_key=None, sha256=None)
    a_backup(superuser)

    said = call("list_jobs")

    assert "1.25 MB" in said.out
    assert "disk full\\x1b[31m" in said.out
    assert "\x1b" not in said.out


@pytest.mark.parametrize("tried", [True, False])
def test_a_waiting_job_says_why_it_waits(call: Call, superuser: User, enqueue: Enqueue, tried: bool) -> None:
    reason = "1 dump is running on db:5432, at most 1 at once: it waits for its turn."
    job = enqueue(last_error=reason)
    if tried:  # its history row says only that it waits
        BackupJob.objects.create(id=job.id, user=superuser, database_name="shop", status="pending")

    (printed,) = call("list_jobs", "--json").objects
    assert (printed["status"], printed["error"]) == ("pending", reason)
    assert reason in call("list_jobs").out
    assert follow.in_words(listing.find(superuser, job.id)) == f"pending: {reason}"


def test_what_a_running_job_once_waited_for_is_not_shown(
    call: Call, superuser: User, enqueue: Enqueue
) -> None:
    held = {"claim_id": uuid.uuid4(), "locked_by": "w", "heartbeat_at": "2026-01-01T00:00Z"}
    enqueue(status="active", last_error="It waited.", **held)

    (printed,) = call("list_jobs", "--json").objects

    assert (printed["status"], printed["error"]) == ("running", None)


def test_a_payload_of_nonsense_is_listed_all_the_same(call: Call, superuser: User, enqueue: Enqueue) -> None:
    enqueue(payload=["not", "an", "object"])
    enqueue(payload={"database_name": 7})

    assert [row["database"] for row in call("list_jobs", "--json").objects] == ["", ""]


def test_others_jobs_are_not_listed(call: Call, user: User, other_user: User, enqueue: Enqueue) -> None:
    job = enqueue()
    a_backup(user)

    assert call("list_jobs", "--json", "--user", other_user.username).objects == []
    assert len(call("list_jobs", "--json", "--user", user.username).objects) == 2
    refused = call("cancel_job", str(job.id), "--user", other_user.username)
    assert (refused.code, f"No job {job.id}" in refused.err) == (2, True)
    job.refresh_from_db()
    assert job.status == "pending"


def test_cancelling_a_waiting_job_ends_it_at_once(call: Call, shop: str) -> None:
    (queued,) = call("enqueue_backup", shop, "--json").objects

    said = call("cancel_job", queued["id"], "--json")

    (printed,) = said.objects
    assert (said.code, printed["status"], printed["error"]) == (0, "cancelled", "Cancelled by root.")


def test_what_has_ended_or_is_unknown_cannot_be_cancelled(call: Call, shop: str) -> None:
    (queued,) = call("enqueue_backup", shop, "--json").objects
    call("cancel_job", queued["id"])

    again = call("cancel_job", queued["id"])
    assert again.code == 2
    assert "has ended already: cancelled" in again.err
    unknown = call("cancel_job", str(uuid.uuid4()))
    assert unknown.code == 2
    assert "is waiting or running" in unknown.err


def test_rerun_queues_the_same_flags_as_a_new_job(call: Call, shop: str) -> None:
    (queued,) = call("enqueue_backup", shop, "--schema-only", "--json").objects
    call("cancel_job", queued["id"])

    (printed,) = call("rerun_job", queued["id"], "--json").objects

    assert printed["id"] != queued["id"]
    assert printed["status"] == "pending"
    assert QueuedJob.objects.get(id=printed["id"]).payload["flags"] == {"schema_only": True}


def test_rerun_refuses_what_is_unknown_or_under_way(call: Call, superuser: User) -> None:
    running = BackupJob.objects.create(user=superuser, database_name="shop", status="running")
    orphan = a_backup(superuser)

    unknown = call("rerun_job", str(uuid.uuid4()))
    assert (unknown.code, "is in the history" in unknown.err) == (2, True)
    busy = call("rerun_job", str(running.id))
    assert (busy.code, "has not ended yet" in busy.err) == (2, True)
    gone = call("rerun_job", str(orphan.id))
    assert (gone.code, "'shop'" in gone.err, "not registered any more" in gone.err) == (2, True, True)
    assert not QueuedJob.objects.exists()


def test_an_id_that_is_none_is_a_usage_error(manage: Call, superuser: User) -> None:
    said = manage("cancel_job", "42")

    assert (said.code, said.out) == (2, "")
    assert "invalid UUID value: '42'" in said.err


def test_a_reader_that_leaves_early_is_no_defect(transactional_db: None, user: User) -> None:
    for _ in range(3):
        a_backup(user)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "manage.py", "list_jobs", "--json", "--user", user.username]
    try:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=process_environment(),
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)

    assert (done.returncode, done.stderr) == (141, b"")
