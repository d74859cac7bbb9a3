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

from jobs import scratch
from jobs.models import BackupCopy, BackupJob, QueuedJob, Upload
from jobs.restoring import RestoreOrder, enqueue_restore
from jobs.services import NotFound
from jobs.upload_limits import NoDump, UploadRefused
from tests.processors.conftest import Source
from tests.restoring.conftest import Failing, Restores

pytestmark = pytest.mark.django_db(transaction=True)

MARK = b"a row that nobody changes"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(5000)
MYSQL = b"-- MySQL dump 10.13  Distrib 8.0.36\n--\nCREATE TABLE `t` (`a` int);\n"
CUSTOM = {"format": "custom", "compress": "none"}
STREAMED: dict[str, object] = {"jobs": 1}
STAGED: dict[str, object] = {"jobs": 2}
# How the bytes go decides what tells that something is wrong with them, and when.
WAYS: list[tuple[str, dict[str, object]]] = [("empty", {}), ("replace", STREAMED), ("replace", STAGED)]


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


NO_DUMPS = [
    ("shop.zip", zipped(), "zip file. Unpack it first"),
    ("logo.png", PNG, "PNG image"),
    ("shop.sql", MYSQL, "MySQL"),
    ("shop.dump", PNG, "pgbr restores what pg_dump writes"),
    ("shop.dump", b"", "empty"),
    ("shop.sql.gz", b"\x1f\x8b\x08" + bytes(20), "damaged"),
    ("shop.tar", tar_of(Member("a.txt", b"a")), "no toc.dat in it, but a.txt"),
]


def test_what_is_no_dump_is_refused_saying_what_it_looks_like(restores: Restores) -> None:
    for name, content, words in NO_DUMPS:
        with pytest.raises(UploadRefused, match=words):
            restores.upload(content, name)
    assert not Upload.objects.exists()
    assert restores.backups.files() == set()


def test_an_archive_newer_than_every_client_or_without_its_list_is_refused(
    restores: Restores, artifact: bytes
) -> None:
    """Its version is in three bytes behind the magic word."""
    with pytest.raises(NoDump, match=r"version 1\.19.*read up to 1\.16"):
        restores.upload(artifact[:5] + bytes([1, 19, 0]) + artifact[8:])
    with pytest.raises(NoDump, match="breaks off"):
        restores.upload(artifact[:700])


def test_no_client_that_reads_it_says_what_to_install(
    failing: Failing, backup: BackupJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.processors.restoring import toolset

    monkeypatch.setattr("jobs.processors.at_target.examination.toolsets", lambda: [toolset(15)])
    failing.take(backup, "new", {}, "client tools found: 15", "pgtools install 17")


# Damaged or changed -----------------------------------------------------------------------------


def test_a_truncated_archive(failing: Failing, artifact: bytes) -> None:
    cut = failing.restores.upload(artifact[: artifact.index(MARK + b" 1500")])
    for mode, flags in WAYS:
        failing.take(cut, mode, flags, "end of file", "The dump is damaged or cut off", "as it was")


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


def test_a_stored_object_changed_by_one_byte(failing: Failing, backup: BackupJob) -> None:
    """In a row's text: to pg_restore all is well with it."""
    path = stored(backup)
    content = path.read_bytes()
    assert content.count(MARK + b" 2999") == 1
    path.write_bytes(content.replace(MARK + b" 2999", MARK.upper() + b" 2999"))
    for mode, flags in WAYS:
        failing.take(backup, mode, flags, "not what was stored", path.name, "Restore another", "as it was")


def test_a_stored_object_cut_short_or_deleted_behind_our_back(failing: Failing, backup: BackupJob) -> None:
    path = stored(backup)
    os.truncate(path, 5000)
    failing.take(backup, "replace", {}, "5000 bytes lie there", path.name, "as it was")
    path.unlink()
    failing.take(backup, "replace", {}, str(backup.id), "No copy", path.name, "as it was")


# That would do harm -----------------------------------------------------------------------------


EVIL = (Member("../evil", b"x"), Member("/tmp/evil", b"x"), Member("1.dat", link="/etc/passwd"))


def test_a_tar_that_climbs_out(failing: Failing, source: Source) -> None:
    good, name = members(failing, source), failing.target("replace")
    for evil in EVIL:
        upload = failing.restores.upload(tar_of(*good, evil), "shop.tar")
        failing.take(upload, "replace", {}, evil.name, "not unpacked", "as it was", name=name)
    assert not list(failing.restores.backups.root.rglob("evil"))


def members(failing: Failing, source: Source) -> list[Member]:
    flags = {"format": "directory", "compress": "none"}
    row = failing.restores.backups.take(source.url, flags, name="folder")
    with tarfile.open(fileobj=io.BytesIO(failing.restores.backups.artifact(row))) as tar:
        return [Member(info.name, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]


class SmallDisk:
    """So much is free beyond what pgbr leaves to others, less what lies in the scratch folder."""

    def __init__(self, scratch: Path, size: int) -> None:
        self.scratch, self.size, self.most = scratch, size, 0

    def __call__(self, _: Path) -> object:
        used = sum(path.stat().st_size for path in self.scratch.rglob("*") if path.is_file())
        self.most = max(self.most, used)
        return type("Usage", (), {"free": scratch.RESERVE_BYTES + self.size - used})()


def test_a_bomb_stops_where_the_disk_would_be_full(
    failing: Failing, source: Source, artifact: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kilobytes that unpack to 200 MB."""
    zeros, disk = bytes(200 << 20), SmallDisk(failing.restores.backups.root / "scratch", 64 << 20)
    bombs = (artifact + zeros, tar_of(*members(failing, source), Member("9999.dat", zeros)))
    for content in bombs:
        upload = failing.restores.upload(zstandard.compress(content, 1), "shop.zst")
        assert (upload.size or 0) < 1 << 20
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", disk)
            failing.take(upload, "replace", STAGED, "does not fit", "Free space", "as it was")
        assert 0 < disk.most < 64 << 20


# Somebody else's --------------------------------------------------------------------------------


def test_an_upload_of_another_user_or_one_that_is_swept_meanwhile(
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
    own = restores.upload(artifact)
    job_id = restores.order(at, own, "replace", name)
    Upload.objects.filter(id=own.id).delete()
    failing.require(restores.finish(job_id), str(own.id), "Send it again")
