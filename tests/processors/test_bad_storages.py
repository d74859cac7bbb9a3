"""What cannot work fails with a message to act on, leaves nothing and stops nobody: storages and disks."""

from __future__ import annotations

import resource
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from jobs.models import QueuedJob, Storage
from jobs.secrets import seal
from tests import s3server

from .conftest import Backups, Fail, Source


def test_a_bucket_whose_secret_is_wrong(
    backups: Backups, shop: Source, fails: Fail, s3_storage: Storage
) -> None:
    Storage.objects.filter(id=s3_storage.id).update(sealed_secret=seal("not-the-secret"))
    row = fails(
        backups.order(backups.register(shop.url), {}, s3_storage),
        s3_storage.bucket,
        "secret access key is wrong",
    )
    assert "not-the-secret" not in f"{row.error}{row.log}"


def test_a_bucket_that_is_missing_and_may_not_be_made(
    backups: Backups, shop: Source, fails: Fail, s3_storage: Storage
) -> None:
    who = s3server.NO_CREATE
    Storage.objects.filter(id=s3_storage.id).update(
        bucket="nowhere-to-be-found", access_key_id=who.access_key, sealed_secret=seal(who.secret_key)
    )
    fails(
        backups.order(backups.register(shop.url), {}, s3_storage),
        "nowhere-to-be-found",
        "may not create it",
        "Create it",
    )


def test_a_bucket_that_is_missing_is_made(backups: Backups, shop: Source, s3_storage: Storage) -> None:
    Storage.objects.filter(id=s3_storage.id).update(bucket=f"made-{uuid.uuid4().hex[:8]}")
    s3_storage.refresh_from_db()
    backups.assert_whole(backups.take(shop.url, {}, s3_storage))


def test_a_bucket_that_stays_away(
    backups: Backups, shop: Source, fails: Fail, s3_storage: Storage, settings: Settings
) -> None:
    settings.STORAGE_RETRY_SECONDS = 1
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        Storage.objects.filter(id=s3_storage.id).update(endpoint=endpoint)
        fails(
            backups.order(backups.register(shop.url), {}, s3_storage),
            endpoint[7:],
            "Check the endpoint",
            "Gave up after 1 s",
        )


def test_a_folder_that_cannot_be_made(backups: Backups, shop: Source, fails: Fail) -> None:
    (backups.root / "file").write_text("in the way")
    storage = Storage.objects.create(
        user=backups.user, name="nas", kind="folder", folder=str(backups.root / "file" / "x")
    )
    fails(backups.order(backups.register(shop.url), {}, storage), str(backups.root / "file"))


def test_a_scratch_folder_that_cannot_be_used(
    backups: Backups, shop: Source, fails: Fail, settings: Settings
) -> None:
    usable, settings.SCRATCH_FOLDER = settings.SCRATCH_FOLDER, backups.root / "file" / "scratch"
    (backups.root / "file").write_text("in the way")
    fails(
        backups.order(backups.register(shop.url)),
        str(settings.SCRATCH_FOLDER),
        "account that runs the worker",
    )
    settings.SCRATCH_FOLDER = usable
    assert QueuedJob.objects.filter(status="active").count() == 0


# Disks -------------------------------------------------------------------------------------------

DISK_BYTES = 8_000_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder that takes DISK_BYTES, and the remedy for it: a file system of its own where one may be
    mounted, else a limit on the size of files, which a write meets in the same way."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield folder, "Free space"
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, before[1]))
    yield folder, "ulimit"
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_under_the_folder(
    backups: Backups, noise: Source, fails: Fail, small_disk: tuple[Path, str]
) -> None:
    disk, remedy = small_disk
    storage = Storage.objects.create(user=backups.user, name="nas", kind="folder", folder=str(disk))
    fails(backups.order(backups.register(noise.url), {}, storage), "'nas'", str(disk), ".dump", remedy)
    assert [path for path in disk.rglob("*") if path.is_file()] == []


def test_a_full_disk_under_the_scratch_folder(
    backups: Backups, noise: Source, fails: Fail, small_disk: tuple[Path, str], settings: Settings
) -> None:
    """Rows that shrink less than expected: the check of the free space lets them pass."""
    disk, _ = small_disk
    usable, settings.SCRATCH_FOLDER = settings.SCRATCH_FOLDER, disk
    row = fails(
        backups.order(backups.register(noise.url), {"format": "directory"}), str(disk), "Free space there"
    )
    settings.SCRATCH_FOLDER = usable
    assert row.log
    assert list(disk.iterdir()) == []


def test_a_scratch_folder_with_too_little_room_is_refused_before_the_dump(
    backups: Backups, noise: Source, fails: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(backups.root)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=5_000_000))
    job_id = backups.order(backups.register(noise.url), {"format": "directory"})
    fails(job_id, str(backups.root / "scratch"), "5.00 MB are free", "about 7.5", "choose the custom")
