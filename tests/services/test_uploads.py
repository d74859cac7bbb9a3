"""Taking a file in: what is stored, what is refused, and that a failure leaves nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from jobs import uploads
from jobs.models import ActivityEvent, QueuedJob, Storage, Upload
from jobs.services import NotFound, ServiceError
from jobs.storage.base import StoreError
from jobs.stores import default_storage, store_for
from jobs.upload_limits import CutOff, InUse, NoDump, TooLarge, UploadRefused, clean_name
from tests import s3server
from tests.conftest import Enqueue

from .conftest import keys
from .test_storages import environment

pytestmark = pytest.mark.django_db

DUMP = (
    b"--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 16.4\n"
    b"-- Dumped by pg_dump version 17.6\n\nSET statement_timeout = 0;\n"
)
PAST = datetime(2026, 1, 2, tzinfo=UTC)
MEGABYTE = b"-- and so on\n" * 80_660


def pieces(content: bytes, size: int = 40) -> Iterator[bytes]:
    yield from (content[at : at + size] for at in range(0, len(content), size))


def files(folder: Path) -> list[Path]:
    """Everything that lies in the built-in storage, unfinished files too."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def nothing_is_left(settings: Settings, user: User) -> Iterator[None]:
    yield
    assert not Upload.objects.exists()
    assert files(settings.BACKUP_FOLDER) == []
    assert not ActivityEvent.objects.exists()


def test_what_is_recorded_is_what_is_stored(user: User) -> None:
    upload = uploads.receive(user, "C:\\dumps\\shop.sql", pieces(DUMP), len(DUMP))
    assert (upload.name, upload.size, upload.state) == ("shop.sql", len(DUMP), "good")
    assert upload.sha256 == hashlib.sha256(DUMP).hexdigest()
    assert b"".join(store_for(upload.storage).read(upload.storage_key)) == DUMP
    assert upload.facts == {
        "format": "plain", "codec": "none", "server_major": 16,
        "in_words": "plain SQL, made by pg_dump 17.6 from PostgreSQL 16.4",
    }  # fmt: skip
    assert upload.keep_until is not None
    assert abs(upload.keep_until - timezone.now() - timedelta(hours=24)) < timedelta(minutes=1)
    assert ActivityEvent.objects.get().action == "upload"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["folder", "S3"])
def test_no_connection_is_held_while_bytes_are_waited_for(user: User, settings: Settings, kind: str) -> None:
    if kind == "S3":
        settings.ENVIRONMENT_STORAGE = environment(s3server.shared().new_bucket())
    held, tokens = [], []

    def slowly() -> Iterator[bytes]:
        yield DUMP
        for _ in range(9):  # more than one part of a multipart upload
            held.append(connection.connection)
            tokens.append(Upload.objects.get(state="writing").upload_token)
            connection.close()
            yield MEGABYTE

    upload = uploads.receive(user, "shop.sql", slowly())
    assert held == [None] * 9
    assert tokens[-1], "nobody could clear the unfinished object away"
    assert tokens[0] or kind == "S3"
    assert keys(upload.storage) == [upload.storage_key]
    assert (upload.size, upload.upload_token) == (len(DUMP) + 9 * len(MEGABYTE), "")


REFUSED: dict[str, tuple[Callable[[], Iterator[bytes]], int | None, type[Exception], str]] = {
    "cut off": (lambda: pieces(DUMP), len(DUMP) + 1, CutOff, "Only 134 of 135 bytes arrived"),
    "cut off at once": (lambda: iter(()), 10, CutOff, "Only 0 of 10 bytes"),
    "too large while it comes": (lambda: pieces(DUMP * 10), None, TooLarge, "larger than 500 B"),
    "too large as it says": (lambda: pieces(DUMP), 501, TooLarge, "UPLOAD_MAX_BYTES"),
    "empty": (lambda: iter(()), None, UploadRefused, "is empty"),
    "empty as it says": (lambda: iter(()), 0, UploadRefused, "is empty"),
    "an image": (lambda: iter([b"\x89PNG\r\n\x1a\n" + bytes(90)]), None, NoDump, "looks like a PNG image"),
    "a damaged archive": (lambda: iter([b"PGDMP\x01\x0f\x00\x04\x08\x01" + b"\xff" * 80]), None, NoDump, "."),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_nothing(
    user: User, settings: Settings, what: str, nothing_is_left: None
) -> None:
    settings.UPLOAD_MAX_BYTES = 500
    chunks, expected, kind, words = REFUSED[what]
    with pytest.raises(kind, match=words):
        uploads.receive(user, "shop.sql", chunks(), expected)


def test_an_error_of_any_kind_leaves_nothing(user: User, nothing_is_left: None) -> None:
    def breaks() -> Iterator[bytes]:
        yield DUMP
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uploads.receive(user, "shop.sql", breaks())


@pytest.mark.parametrize(
    ("given", "name"),
    [("a.dump", "a.dump"), ("/etc/passwd", "passwd"), ("..\\x y.sql", "x y.sql"), (" größe 🐘 ", "größe 🐘"),
     ("x" * 255, "x" * 255)],
)  # fmt: skip
def test_a_name_loses_its_folders(given: str, name: str) -> None:
    assert clean_name(given) == name


@pytest.mark.parametrize("given", ["", " ", "a/", "..", "x" * 256, "a\0b", "a\nb", "a\u202eb"])
def test_a_name_that_is_none_is_refused(user: User, given: str, nothing_is_left: None) -> None:
    with pytest.raises(UploadRefused, match="1 to 255 printable"):
        uploads.receive(user, given, pieces(DUMP))


def test_what_cannot_be_cleared_away_is_left_to_the_sweep(user: User, settings: Settings) -> None:
    folder = settings.BACKUP_FOLDER

    def away() -> Iterator[bytes]:
        yield DUMP
        folder.rename(folder.with_name("moved"))
        folder.write_text("no folder")
        yield DUMP

    with pytest.raises(StoreError):
        uploads.receive(user, "shop.sql", away())
    assert Upload.objects.get().state == "deleting"
    folder.unlink()
    folder.with_name("moved").rename(folder)
    assert uploads.sweep() == 0, "it is tried again in an hour only"
    Upload.objects.update(keep_until=PAST)
    assert uploads.sweep() == 1
    assert files(folder) == []


def test_the_lease_is_renewed_and_a_deleted_upload_ends(
    user: User, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(uploads, "RENEW_SECONDS", 0.0)
    sizes = []

    def growing() -> Iterator[bytes]:
        yield DUMP
        Upload.objects.update(keep_until=PAST)
        yield DUMP
        row = Upload.objects.get()
        assert row.keep_until is not None
        assert row.keep_until > timezone.now() + timedelta(minutes=50)
        sizes.append(row.size)
        uploads.delete(row, by=user)
        yield DUMP

    with pytest.raises(UploadRefused, match=r"shop\.sql was deleted while it was being uploaded"):
        uploads.receive(user, "shop.sql", growing())
    assert sizes == [2 * len(DUMP)]
    assert not Upload.objects.exists()
    assert files(settings.BACKUP_FOLDER) == []


def test_an_outage_of_the_database_at_the_end_loses_no_upload(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, failures = uploads._mark_good, [OperationalError("gone"), OperationalError("gone")]

    def flaky(*arguments: Any) -> None:
        mark(*arguments)
        if failures:
            raise failures.pop()  # the answer got lost

    monkeypatch.setattr(uploads, "_mark_good", flaky)
    monkeypatch.setattr("jobs.uploads.time.sleep", lambda _: None)
    upload = uploads.receive(user, "shop.sql", pieces(DUMP))
    assert (upload.state, keys(default_storage())) == ("good", [upload.storage_key])


@pytest.fixture
def upload(user: User) -> Upload:
    return uploads.receive(user, "shop.sql", pieces(DUMP))


def past(upload: Upload, **columns: Any) -> None:
    Upload.objects.filter(id=upload.id).update(keep_until=PAST, **columns)


def unfinished(user: User, storage: Storage) -> Upload:
    """What a web server that was killed leaves."""
    return Upload.objects.create(
        user=user, name="x", storage=storage, storage_key="uploads/x", keep_until=PAST
    )


def test_the_sweep_takes_what_is_past_its_time_and_nothing_else(user: User, upload: Upload) -> None:
    assert uploads.sweep() == 0
    forever, old = (uploads.receive(user, name, pieces(DUMP)) for name in ("kept.sql", "old.sql"))
    past(forever)
    past(old)
    uploads.keep(forever, by=user)
    assert uploads.sweep() == 1
    assert set(Upload.objects.values_list("name", flat=True)) == {"shop.sql", "kept.sql"}
    assert sorted(keys(upload.storage)) == sorted([upload.storage_key, forever.storage_key])


def test_the_sweep_takes_what_a_killed_web_server_was_writing(user: User, settings: Settings) -> None:
    storage = default_storage()
    row = Upload.objects.create(
        user=user, name="x", storage=storage, storage_key="uploads/x", keep_until=PAST
    )
    store = store_for(storage)
    store.prepare()
    writer = store.writer(row.storage_key)  # its token never reached the row
    writer.write(DUMP)
    assert uploads.sweep() == 1
    assert files(settings.BACKUP_FOLDER) == []


@pytest.mark.parametrize("status", ["pending", "active"])
def test_what_a_restore_needs_stays_until_that_has_ended(
    user: User, upload: Upload, enqueue: Enqueue, status: str
) -> None:
    claimed = {"claim_id": upload.id, "locked_by": "w", "heartbeat_at": timezone.now()}
    job = enqueue("restore", {"upload_id": str(upload.id)}, status=status, **claimed)
    enqueue("backup", ["nonsense"])
    past(upload)
    assert uploads.sweep() == 0
    with pytest.raises(InUse, match=r"shop\.sql: a restore from it waits or runs"):
        uploads.delete(upload, by=user)
    QueuedJob.objects.filter(id=job.id).update(status="failed")
    assert uploads.sweep() == 1
    assert keys(upload.storage) == []


def test_a_storage_that_is_away_holds_up_no_other(user: User, upload: Upload, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    broken = Storage.objects.create(user=user, name="nas", kind="folder", folder=str(tmp_path / "file"))
    sealed = Storage.objects.create(
        user=user, name="s3", kind="s3", bucket="b", sealed_secret="of another key"
    )
    for place in (broken, broken, sealed):
        unfinished(user, place)
    past(upload)
    assert uploads.sweep() == 1
    assert keys(upload.storage) == []
    assert Upload.objects.count() == 3


def test_a_storage_that_does_not_delete_is_said_and_tried_again(user: User, upload: Upload) -> None:
    folder = Path(upload.storage.folder)
    folder.rename(folder.with_name("moved"))
    with pytest.raises(ServiceError, match=r"does not exist.*goes on trying"):
        uploads.delete(upload, by=user)
    folder.with_name("moved").rename(folder)
    past(upload)
    assert uploads.sweep() == 1
    assert keys(upload.storage) == []


def test_anothers_upload_is_not_found(upload: Upload, other_user: User, superuser: User) -> None:
    for act in (uploads.delete, uploads.keep):
        with pytest.raises(NotFound):
            act(upload, by=other_user)
    uploads.delete(upload, by=superuser)
    with pytest.raises(NotFound):
        uploads.keep(upload, by=superuser)


def test_only_a_complete_upload_is_kept(user: User, upload: Upload) -> None:
    past(upload, state="writing")
    with pytest.raises(ServiceError, match="is writing"):
        uploads.keep(upload, by=user)
