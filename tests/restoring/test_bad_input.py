"""What is no dump, is damaged, was changed or is somebody else's: said clearly, and nothing is touched."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from django.conf import settings
from django.contrib.auth.models import User

from jobs.models import BackupCopy, BackupJob, QueuedJob, Upload
from jobs.processors import staging
from jobs.restoring import RestoreOrder, enqueue_restore
from jobs.services import NotFound, ServiceError
from jobs.upload_limits import NoDump, UploadRefused
from tests.processors.conftest import Source
from tests.restoring.conftest import Failing, Restores

pytestmark = pytest.mark.django_db(transaction=True)

MARK = b"a row that nobody changes"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(5000)
MYSQL = b"-- MySQL dump 10.13  Distrib 8.0.36\n--\nCREATE TABLE `t` (`a` int);\n"
CUSTOM = {"format": "custom", "compress": "none"}
STREAMED, STAGED = {"jobs": 1}, {"jobs": 2}
# How the bytes go decides what tells that something is wrong with them, and when.
WAYS = [
    pytest.param("empty", {}, id="streamed into one transaction"),
    pytest.param("replace", STREAMED, id="streamed beside"),
    pytest.param("replace", STAGED, id="staged"),
]


@pytest.fixture(scope="module")
def source(make_source: Callable[..., Source]) -> Source:
    return make_source(
        17,
        f"CREATE TABLE orders AS SELECT n, '{MARK.decode()} ' || n AS t FROM generate_series(1, 3000) AS n;"
        "CREATE INDEX ON orders (n); ALTER TABLE orders ADD PRIMARY KEY (n)",
    )


@pytest.fixture
def backup(restores: Restores, source: Source) -> BackupJob:
    return restores.backups.take(source.url, CUSTOM, name="shop")


@pytest.fixture
def artifact(restores: Restores, backup: BackupJob) -> bytes:
    return restores.backups.artifact(backup)


def zipped() -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as file:
        file.writestr("shop.sql", "SELECT 1")
    return into.getvalue()


class Member(NamedTuple):
    name: str
    content: bytes = b""
    link: str = ""


def tar_of(*members: Member) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as tar:
        for member in members:
            info = tarfile.TarInfo(member.name)
            info.size = len(member.content)
            if member.link:
                info.type, info.linkname = tarfile.SYMTYPE, member.link
            tar.addfile(info, io.BytesIO(member.content))
    return into.getvalue()


# At the door ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("shop.zip", zipped(), ["zip file", "Unpack it first"]),
        ("logo.png", PNG, ["PNG image"]),
        ("shop.sql", MYSQL, ["MySQL"]),
        ("shop.dump", PNG, ["PNG image", "pgbr restores what pg_dump writes"]),
        ("shop.dump", b"", ["empty"]),
        ("shop.sql.gz", b"\x1f\x8b\x08" + bytes(20), ["damaged"]),
        ("shop.tar", tar_of(Member("a.txt", b"a")), ["no toc.dat", "a.txt"]),
    ],
)
def test_what_is_no_dump_is_refused_saying_what_it_looks_like(
    restores: Restores, name: str, content: bytes, words: list[str]
) -> None:
    with pytest.raises(UploadRefused) as refusal:
        restores.upload(content, name)
    assert [word for word in words if word not in str(refusal.value)] == [], refusal.value
    assert not Upload.objects.exists()
    assert restores.backups.files() == set()


def test_an_archive_newer_than_every_client_is_refused(restores: Restores, artifact: bytes) -> None:
    """Its version is in three bytes behind the magic word."""
    with pytest.raises(NoDump, match=r"version 1\.19.*read up to 1\.16"):
        restores.upload(artifact[:5] + bytes([1, 19, 0]) + artifact[8:])


def test_an_archive_cut_off_in_its_table_of_contents_is_refused(restores: Restores, artifact: bytes) -> None:
    with pytest.raises(NoDump, match="breaks off"):
        restores.upload(artifact[:700])


def test_no_client_that_reads_it_says_what_to_install(
    failing: Failing, backup: BackupJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.processors.restoring import toolset

    monkeypatch.setattr("jobs.processors.target.examination.toolsets", lambda: [toolset(15)])
    failing.take(backup, "new", {}, "client tools found: 15", "pgtools install 17")


# Damaged or changed -----------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "flags"), WAYS)
def test_a_truncated_archive(failing: Failing, artifact: bytes, mode: str, flags: dict[str, object]) -> None:
    cut = artifact[: artifact.index(MARK + b" 1500")]
    failing.take(
        failing.restores.upload(cut),
        mode,
        flags,
        "end of file",
        "The dump is damaged or cut off",
        "as it was",
    )


def test_a_truncated_script(failing: Failing, source: Source) -> None:
    whole = failing.restores.backups.take(source.url, {"format": "plain"}, name="plain")
    script = failing.restores.backups.artifact(whole)
    cut = failing.restores.upload(script[: script.index(MARK + b" 1500")], "shop.sql")
    failing.take(cut, "replace", {}, "cut off", "as it was")
    long = zstandard.compress(script + b"".join(b"-- %d\n" % n for n in range(300_000)))
    packed = failing.restores.upload(long[:-40], "shop.sql.zst")
    failing.take(packed, "empty", {}, "break off", "as it was")


def stored(row: BackupJob) -> Path:
    copy = BackupCopy.objects.select_related("storage").get(backup=row)
    return Path(copy.storage.folder or settings.BACKUP_FOLDER, copy.storage_key)


@pytest.mark.parametrize(("mode", "flags"), WAYS)
def test_a_stored_object_changed_by_one_byte(
    failing: Failing, backup: BackupJob, mode: str, flags: dict[str, object]
) -> None:
    """In a row's text: to pg_restore all is well with it."""
    path = stored(backup)
    content = path.read_bytes()
    assert content.count(MARK + b" 2999") == 1
    path.write_bytes(content.replace(MARK + b" 2999", MARK.upper() + b" 2999"))
    failing.take(backup, mode, flags, "is not what was stored", path.name, "Restore another", "as it was")


def test_a_stored_object_cut_short(failing: Failing, backup: BackupJob) -> None:
    path = stored(backup)
    os.truncate(path, 5000)
    failing.take(backup, "replace", {}, "5000 bytes lie there", path.name)


def test_a_stored_object_deleted_behind_our_back(failing: Failing, backup: BackupJob) -> None:
    stored(backup).unlink()
    row = failing.take(backup, "replace", {}, str(backup.id), "No copy", stored(backup).name)
    assert row.kept_name is None


# That would do harm -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "evil", [Member("../evil", b"x"), Member("/tmp/evil", b"x"), Member("1.dat", link="/etc/passwd")], ids=str
)
def test_a_tar_that_climbs_out(failing: Failing, source: Source, evil: Member) -> None:
    row = failing.restores.backups.take(source.url, {"format": "directory"}, name="folder")
    with tarfile.open(fileobj=io.BytesIO(failing.restores.backups.artifact(row))) as tar:
        good = [Member(m.name, tar.extractfile(m).read()) for m in tar]  # type: ignore[union-attr]
    upload = failing.restores.upload(tar_of(*good, evil), "shop.tar")
    failing.take(upload, "replace", {}, evil.name, "not unpacked", "as it was")
    assert not list(failing.restores.backups.root.rglob("evil"))


class SmallDisk:
    """So much is free beyond what pgbr leaves to others, less what lies in the scratch folder."""

    def __init__(self, scratch: Path, size: int) -> None:
        self.scratch, self.size, self.most = scratch, size, 0

    def __call__(self, _: Path) -> object:
        used = sum(path.stat().st_size for path in self.scratch.rglob("*") if path.is_file())
        self.most = max(self.most, used)
        return type("Usage", (), {"free": staging.RESERVE_BYTES + self.size - used})()


@pytest.mark.parametrize("packed", ["custom", "directory"])
def test_a_bomb_stops_where_the_disk_would_be_full(
    failing: Failing, source: Source, monkeypatch: pytest.MonkeyPatch, packed: str
) -> None:
    """Some kilobytes that unpack to 400 MB."""
    row = failing.restores.backups.take(source.url, {"format": packed, "compress": "none"}, name="folder")
    content, zeros = failing.restores.backups.artifact(row), bytes(400 << 20)
    if packed == "directory":
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            good = [Member(m.name, tar.extractfile(m).read()) for m in tar]  # type: ignore[union-attr]
        content = tar_of(*good, Member("9999.dat", zeros))
    else:
        content += zeros
    upload = failing.restores.upload(zstandard.compress(content, 1), "shop.zst")
    assert (upload.size or 0) < 1 << 20
    disk = SmallDisk(failing.restores.backups.root / "scratch", 64 << 20)
    monkeypatch.setattr("shutil.disk_usage", disk)
    failing.take(upload, "replace", STAGED, "does not fit", "Free space", "as it was")
    assert 0 < disk.most < 64 << 20


# Somebody else's --------------------------------------------------------------------------------


def test_an_upload_of_another_user(
    restores: Restores, failing: Failing, artifact: bytes, other_user: User
) -> None:
    from jobs.uploads import receive

    upload = receive(other_user, "shop.dump", iter([artifact]), len(artifact))
    name = failing.target("replace")
    at = restores.at(failing.server, name)
    order = RestoreOrder(at, "replace", name, {}, upload=upload)
    with pytest.raises(NotFound, match=str(upload.id)):
        enqueue_restore(order, by=restores.backups.user)
    own = restores.upload(artifact)
    job_id = enqueue_restore(RestoreOrder(at, "replace", name, {}, upload=own), by=restores.backups.user)
    job = QueuedJob.objects.get(id=job_id)
    QueuedJob.objects.filter(id=job_id).update(payload=job.payload | {"upload_id": str(upload.id)})
    failing.require(restores.finish(job_id), str(upload.id), "does not exist")


def test_an_upload_that_is_swept_meanwhile(restores: Restores, failing: Failing, artifact: bytes) -> None:
    upload = restores.upload(artifact)
    name = failing.target("replace")
    job_id = restores.order(restores.at(failing.server, name), upload, "replace", name)
    Upload.objects.filter(id=upload.id).delete()
    failing.require(restores.finish(job_id), str(upload.id), "Send it again")


def test_a_backup_that_is_not_complete(restores: Restores, failing: Failing, backup: BackupJob) -> None:
    BackupJob.objects.filter(id=backup.id).update(status="failed", storage_key=None)
    backup.refresh_from_db()
    name = failing.target("replace")
    with pytest.raises(ServiceError, match="is failed: only a completed one"):
        restores.order(restores.at(failing.server, name), backup, "replace", name)
