from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F
from django.db.models.functions import Now

from jobs.models import BackupCopy, Storage
from jobs.storage.base import StoreError
from jobs.storage.s3 import S3Store
from jobs.sweeping import sweep, sweep_due, want_sweep
from tests import s3server

from .conftest import CONTENT, copy_of, put

pytestmark = pytest.mark.django_db


def state(copy: BackupCopy) -> tuple[str, bool]:
    copy.refresh_from_db()
    return copy.state, bool(copy.error)


def test_a_copy_whose_object_is_gone_is_no_good_until_it_is_back(nas: Storage) -> None:
    whole, lost = copy_of(put(nas)), copy_of(put(nas))
    path = Path(nas.folder) / lost.storage_key
    path.rename(path.with_suffix(".away"))
    Storage.objects.update(swept_at=Now())
    swept = sweep(nas)
    assert [each["backup"] for each in swept.lost.first] == [str(lost.backup_id)]
    assert (state(whole), state(lost)) == (("good", False), ("failed", True))
    path.with_suffix(".away").rename(path)
    assert sweep_due() == 0, "the storage was swept just now"
    assert state(lost) == ("good", False)


def test_a_copy_that_is_shorter_than_it_was_is_no_good(nas: Storage) -> None:
    copy = copy_of(put(nas))
    (Path(nas.folder) / copy.storage_key).write_bytes(CONTENT[:-1])
    sweep(nas)
    assert state(copy) == ("failed", True)
    assert f"{len(CONTENT) - 1} bytes lie there" in str(copy.error)


def test_a_storage_that_is_away_loses_nothing(nas: Storage) -> None:
    copy = copy_of(put(nas))
    shutil.move(nas.folder, f"{nas.folder}-unmounted")
    swept = sweep(nas)
    assert "does not exist" in str(swept.error)
    assert (state(copy), swept.lost.count) == (("good", False), 0)


def test_where_nothing_may_be_listed_each_copy_is_asked_for(
    s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, lost = copy_of(put(s3_storage)), copy_of(put(s3_storage))
    s3server.shared().client().delete_object(Bucket=s3_storage.bucket, Key=lost.storage_key)
    monkeypatch.setattr(S3Store, "list", refuse)
    swept = sweep(s3_storage)
    assert "cannot be listed" in str(swept.error)
    assert (state(whole), state(lost)) == (("good", False), ("failed", True))


def refuse(*_: object) -> None:
    raise StoreError("Access denied.")


def test_each_storage_is_swept_once_a_day_by_one_worker(nas: Storage) -> None:
    assert sweep_due() >= 1
    assert sweep_due() == 0
    Storage.objects.update(swept_at=F("swept_at") - timedelta(days=1))
    assert sweep_due() >= 1
    want_sweep(nas)
    assert sweep_due() == 1


def test_after_trouble_it_is_swept_again_within_the_hour(nas: Storage) -> None:
    Storage.objects.update(swept_at=Now())
    Path(nas.folder).rmdir()
    sweep(nas)
    assert sweep_due() == 0
    Storage.objects.update(swept_at=F("swept_at") - timedelta(hours=1))
    assert sweep_due() == 1
