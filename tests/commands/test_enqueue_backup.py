from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from jobs import databases
from jobs.models import QueuedJob, Storage
from jobs.pgtools.options import FIELDS, Field
from jobs.stores import default_storage
from tests.commands.conftest import Call


def test_job_is_queued_and_shown_as_json(call: Call, shop: str, superuser: User) -> None:
    said = call("enqueue_backup", shop, "--format", "directory", "--jobs", "2", "--json")

    (printed,) = said.objects
    job = QueuedJob.objects.get()
    assert printed["id"] == str(job.id)
    assert (printed["queue"], printed["status"], printed["database"]) == ("backup", "pending", "shop")
    assert printed["size"] is None
    assert list(printed) == [
        "id", "queue", "status", "database", "size", "sha256", "storage_key", "error", "created_at",
        "started_at", "completed_at",
    ]  # fmt: skip
    assert job.payload["flags"] == {"format": "directory", "jobs": 2}
    assert job.user == superuser


SAMPLES = {
    "switch": ([], True),
    "either": ([], True),
    "number": (["7"], 7),
    "patterns": (["a*"], ["a*"]),
    "sections": (["data"], ["data"]),
    "text": (["UTF8"], "UTF8"),
    "codec": (["gzip:9"], "gzip:9"),
    "choice": (["directory"], "directory"),
}
# What an option must be accompanied by to make sense.
COMPANIONS = {
    "jobs": ["--format=directory"],
    "if_exists": ["--clean"],
    "on_conflict_do_nothing": ["--inserts"],
    "disable_triggers": ["--data-only"],
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_option_of_a_backup_can_be_given(call: Call, shop: str, field: Field) -> None:
    words, value = SAMPLES[field.kind]

    said = call("enqueue_backup", shop, f"--{field.option}", *words, *COMPANIONS.get(field.name, []))

    assert said.code == 0, said
    assert QueuedJob.objects.get().payload["flags"][field.name] == value


def test_storage_is_taken_by_name(call: Call, shop: str) -> None:
    storage = default_storage()

    assert call("enqueue_backup", shop, "--storage", storage.name).code == 0
    assert QueuedJob.objects.get().payload["storage_id"] == str(storage.id)


def test_nobody_to_run_it_is_said(call: Call, shop: str) -> None:
    said = call("enqueue_backup", shop)

    assert said.code == 0
    assert "No worker is running for the backup queue" in said.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nosuch"], "No database is called 'nosuch'. Registered: shop"),
        (["shop", "--if-exists"], "if_exists needs clean"),
        (["shop", "--data-only", "--schema-only"], "exclude each other"),
        (["shop", "--format=tar", "--compress=zstd:3"], "tar format takes no compression"),
        (["shop", "--compress=brotli"], "compress must be zstd, gzip, lz4"),
        (["shop", "--jobs=4"], "needs format directory"),
        (["shop", "--table", "a.b.c.d"], "tables: 'a.b.c.d'"),
        (["shop", "--storage", "attic"], "No storage is called 'attic'"),
        (["shop", "--user", "nobody"], "No user is called 'nobody'"),
        (["shop", "--format=zip"], "invalid choice"),
        (["shop", "--jobs=many"], "invalid int value"),
        ([], "arguments are required"),
    ],
)
def test_refusal_names_the_object_and_enqueues_nothing(
    call: Call, shop: str, arguments: list[str], expected: str
) -> None:
    said = call("enqueue_backup", *arguments)

    assert expected in said.err
    assert not QueuedJob.objects.exists()
    if "invalid" not in expected and "required" not in expected:
        assert said.code == 2


def test_all_problems_are_told_at_once(call: Call, shop: str) -> None:
    said = call("enqueue_backup", shop, "--if-exists", "--jobs=3")

    assert "if_exists needs clean" in said.err
    assert "needs format directory" in said.err


def test_anothers_database_is_unknown(call: Call, shop: str, user: User, other_user: User, url: str) -> None:
    databases.register(user, "private", url, by=user)

    said = call("enqueue_backup", "private", "--user", other_user.username)

    assert said.code == 2
    assert "No database is called 'private'. Registered: none yet" in said.err
    assert not QueuedJob.objects.exists()


def test_anothers_storage_is_unknown(call: Call, user: User, other_user: User, url: str) -> None:
    databases.register(user, "mine", url, by=user)
    Storage.objects.create(name="theirs", user=other_user, bucket="b")

    said = call("enqueue_backup", "mine", "--user", user.username, "--storage", "theirs")

    assert said.code == 2
    assert "No storage is called 'theirs'" in said.err


def test_several_superusers_must_be_told_apart(call: Call, shop: str) -> None:
    User.objects.create_superuser("second", password=None)

    said = call("enqueue_backup", shop)

    assert said.code == 2
    assert "--user" in said.err
    assert "second" in said.err


def test_no_superuser_is_an_error_with_the_way_out(call: Call, db: None) -> None:
    said = call("list_jobs")

    assert said.code == 2
    assert "make run" in said.err


def test_usage_errors_end_with_2_and_leave_stdout_empty(manage: Call) -> None:
    said = manage("enqueue_backup", "shop", "--format", "zip", "--json")

    assert (said.code, said.out) == (2, "")
    assert "invalid choice: 'zip'" in said.err


def test_unknown_name_ends_with_2_and_leaves_stdout_empty(manage: Call, superuser: User) -> None:
    said = manage("enqueue_backup", "nosuch", "--json", "--wait")

    assert (said.code, said.out) == (2, "")
    assert "No database is called 'nosuch'" in said.err
    assert "Traceback" not in said.err
