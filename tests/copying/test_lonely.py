"""Backups whose copies would be lost together with their database, or with pgbr."""

from __future__ import annotations

import socket
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from jobs.copying import lonely
from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.secrets import seal

pytestmark = pytest.mark.django_db
URL = "postgresql://app:secret@DB.example.com:5433,10.0.0.7/shop"
FOLDER = "folder"

Kept = Callable[..., BackupJob]


@pytest.fixture
def kept(user: User) -> Kept:
    """`kept("folder", "https://s3.example.com", url=…)`: a backup with a good copy in each of these."""

    def make(*places: str, url: str = URL, state: str = "good") -> BackupJob:
        number = Database.objects.count()
        database = Database.objects.create(user=user, name=f"shop {number}", sealed_url=seal(url))
        backup = BackupJob.objects.create(
            user=user, database=database, database_name=database.name, status="completed", size=1, sha256="x",
            storage_key="k",
        )  # fmt: skip
        for place in places:
            kind = {"kind": "folder"} if place == FOLDER else {"kind": "s3", "endpoint": place}
            storage = Storage.objects.create(
                user=user, name=f"{place} {Storage.objects.filter(user=user).count()}", **kind
            )
            BackupCopy.objects.create(backup=backup, storage=storage, storage_key="k", state=state)
        return backup

    return make


def notice(backup: BackupJob) -> str | None:
    return lonely(BackupJob.objects.filter(id=backup.id)).get(backup.id)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([FOLDER], "The only copy (in 'folder 0') lies on the machine that pgbr runs on"),
        (["http://127.0.0.1:9000"], "that pgbr runs on"),
        (["http://localhost:9000"], "that pgbr runs on"),
        (["http://[::1]:9000"], "that pgbr runs on"),
        ([f"http://{socket.gethostname()}:9000"], "that pgbr runs on"),
        (["http://db.EXAMPLE.com:9000"], "the machine of the database itself"),
        (["http://10.0.0.7:9000"], "the machine of the database itself"),
        (
            [FOLDER, "http://10.0.0.7:9000"],
            "lie on the machine of the database itself and the machine that pgbr",
        ),
        ([FOLDER, FOLDER], "All copies (in 'folder 0' and 'folder 1') lie on the machine that pgbr runs on:"),
        (["http://10.0.0.8:9000"], None),
        ([""], None),
        ([FOLDER, "https://s3.example.com"], None),
        ([], None),
    ],
)
def test_where_the_good_copies_lie_decides(kept: Kept, places: list[str], said: str | None) -> None:
    found = notice(kept(*places))
    assert found == said if said is None else said in (found or "")


def test_what_helps_depends_on_who_made_the_backup(kept: Kept) -> None:
    backup = kept(FOLDER)
    assert "Let the database name a storage elsewhere" in (notice(backup) or "")
    BackupJob.objects.filter(id=backup.id).update(schedule_id=uuid4())
    assert "Add a storage elsewhere to the schedule." in (notice(backup) or "")


def test_a_copy_that_is_not_good_is_no_help(kept: Kept) -> None:
    backup = kept(FOLDER)
    storage = Storage.objects.create(user=backup.user, name="off site", kind="s3", endpoint="")
    copy = BackupCopy.objects.create(backup=backup, storage=storage, storage_key="k2", state="failed")
    assert "The copy in 'off site' is still to be made." in (notice(backup) or "")
    BackupCopy.objects.filter(id=copy.id).update(state="good")
    assert notice(backup) is None


def test_a_database_that_is_gone_or_sealed_elsewhere_is_no_trouble(kept: Kept) -> None:
    gone, sealed = kept(FOLDER), kept("http://10.0.0.7:9000")
    BackupJob.objects.filter(id=gone.id).update(database=None)
    Database.objects.filter(name=sealed.database_name).update(sealed_url="with another key")
    assert notice(gone)
    assert notice(sealed) is None


def test_the_number_of_queries_does_not_grow(
    kept: Kept, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows = [kept(FOLDER) for _ in range(5)]
    with django_assert_num_queries(2):
        assert set(lonely(BackupJob.objects.all())) == {row.id for row in rows}
