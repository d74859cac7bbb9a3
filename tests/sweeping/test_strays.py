from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from jobs.models import BackupCopy, QueuedJob, Storage
from jobs.storage.keys import manifest_key
from jobs.sweeping import strays, sweep
from tests import s3server

from .conftest import Artifact, backup_of, copy_of, keys, put

pytestmark = pytest.mark.django_db


def reasons(storage: Storage) -> list[str]:
    return [each["words"] for each in sweep(storage).strays.first]


def test_what_this_installation_made_and_no_row_speaks_of_is_deleted(nas: Storage) -> None:
    known, stray = put(nas), put(nas)
    copy_of(known)
    backup_of(stray, "failed")
    swept = sweep(nas)
    assert [each["key"] for each in swept.deleted.first] == [stray.key]
    assert (swept.known.count, swept.strays.count) == (3, 0)
    assert sorted(keys(nas)) == sorted([known.key, f"{known.key}.globals.sql", f"{known.key}.json"])


def test_the_report_is_kept_in_the_row(nas: Storage) -> None:
    stray = put(nas)
    sweep(nas)
    nas.refresh_from_db()
    assert isinstance(nas.swept, dict)
    assert nas.swept["deleted"]["first"][0]["key"] == stray.key
    assert nas.swept["error"] is None
    assert nas.swept_at


def manifest_gone(stray: Artifact) -> None:
    Path(stray.storage.folder, manifest_key(stray.key)).unlink()


def manifest_of_nonsense(stray: Artifact) -> None:
    Path(stray.storage.folder, manifest_key(stray.key)).write_text("[" * 100_000)
    old = datetime.now(UTC).timestamp() - 200_000
    os.utime(Path(stray.storage.folder, manifest_key(stray.key)), (old, old))


def backup_has_nothing_else(stray: Artifact) -> None:
    backup_of(stray)


def job_runs(stray: Artifact) -> None:
    assert stray.storage.user
    QueuedJob.objects.create(id=stray.job_id, user=stray.storage.user, queue="backup")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (manifest_gone, "no manifest"),
        (manifest_of_nonsense, "no manifest"),
        (backup_has_nothing_else, "all that is left of the backup"),
        (job_runs, "its job has not ended"),
    ],
)
def test_what_may_be_needed_is_only_reported(
    nas: Storage, spoil: Callable[[Artifact], None], why: str
) -> None:
    stray = put(nas)
    spoil(stray)
    assert why in reasons(nas)[0]
    assert stray.is_there


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"instance": "5f0d9a52-0000-4000-8000-000000000000"}, "another installation"),
        ({"instance": None}, "another installation"),
        ({"artifact": {"key": "shop/other.dump"}}, "speaks of another object"),
        ({"artifact": None}, "speaks of another object"),
        ({"job_id": "none"}, "names no job"),
        ({"age": timedelta(hours=23)}, "less than a day old"),
        ({"known": False}, "never heard of"),
    ],
)
def test_what_is_not_surely_ours_is_only_reported(nas: Storage, told: dict[str, object], why: str) -> None:
    stray = put(nas, **told)  # type: ignore[arg-type]
    assert why in reasons(nas)[0]
    assert stray.is_there


def test_other_peoples_files_are_counted_and_left_alone(nas: Storage) -> None:
    Path(nas.folder, "holiday.jpg").write_bytes(b"a beach")
    Path(nas.folder, "holiday.jpg.json").write_bytes(b"{}")
    swept = sweep(nas)
    assert (swept.foreign.count, swept.foreign.bytes, swept.strays.count) == (2, 9, 0)
    assert len(keys(nas)) == 2


def test_another_row_for_the_same_place_protects_what_lies_there(nas: Storage, user: User) -> None:
    twin = Storage.objects.create(user=user, name="twin", kind="folder", folder=nas.folder)
    artifact = put(nas)
    copy_of(artifact)
    (why,) = reasons(twin)
    assert "of another storage" in why
    assert artifact.is_there


def test_what_a_deletion_left_is_told_though_the_other_storage_has_its_copy(
    nas: Storage, user: User, tmp_path: Path
) -> None:
    """Copies have the same name in every storage that has no prefix."""
    other = Storage.objects.create(user=user, name="other", kind="folder", folder=str(tmp_path / "other"))
    kept = put(nas)
    BackupCopy.objects.filter(id=copy_of(kept).id).update(storage=other)
    assert sweep(nas).known.count == 0
    assert [each["key"] for each in sweep(nas).strays.first] == [kept.key]


def test_a_storage_inside_of_another_ones_folder_is_left_alone(nas: Storage, user: User) -> None:
    inner = Path(nas.folder) / "inner"
    inner.mkdir()
    inside = Storage.objects.create(user=user, name="inside", kind="folder", folder=str(inner))
    artifact = put(inside)
    copy_of(artifact)
    assert reasons(nas) == ["its manifest speaks of another object"]
    assert artifact.is_there


def test_outside_of_the_prefix_nothing_is_looked_at(s3_storage: Storage) -> None:
    put(s3_storage)
    s3_storage.prefix = "mine"
    swept = sweep(s3_storage)
    assert (swept.known.count, swept.strays.count, swept.foreign.count) == (0, 0, 0)


@pytest.fixture
def locking(s3_storage: Storage) -> Storage:
    bucket = f"{s3_storage.bucket}-locking"
    s3server.shared().client().create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    Storage.objects.filter(id=s3_storage.id).update(bucket=bucket)
    s3_storage.refresh_from_db()
    return s3_storage


def test_what_is_locked_stays(locking: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "OLD", timedelta(0))
    held, free = put(locking), put(locking)
    until = datetime.now(UTC) + timedelta(days=1)
    s3server.shared().client().put_object_retention(
        Bucket=locking.bucket, Key=held.key, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": until}
    )
    swept = sweep(locking)
    assert [(each["key"], each["words"]) for each in swept.strays.first] == [(held.key, "it is locked")]
    assert [each["key"] for each in swept.deleted.first] == [free.key]
    assert held.is_there
    assert not free.is_there
