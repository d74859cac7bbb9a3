"""Objects that nobody may delete yet, as their store says it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.storage.base import FOREVER, Store, StoreError
from jobs.storage.s3 import S3Store
from tests.s3server import PUT_ONLY, S3Server
from tests.storage.stores import s3_store, save

KEY = "db/one.dump"


@pytest.fixture
def locking(weed: S3Server, bucket: str) -> str:
    weed.client().create_bucket(Bucket=f"{bucket}-locking", ObjectLockEnabledForBucket=True)
    return f"{bucket}-locking"


def test_what_is_not_locked_or_not_there_has_no_date(store: Store) -> None:
    save(store, KEY, b"x")
    assert store.locked_until(KEY) is None
    assert store.locked_until("db/none.dump") is None


def test_a_retention_has_a_date(weed: S3Server, locking: str) -> None:
    store, until = s3_store(weed, locking), datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    save(store, KEY, b"x")
    weed.client().put_object_retention(
        Bucket=locking, Key=KEY, Retention={"Mode": "COMPLIANCE", "RetainUntilDate": until}
    )
    assert store.locked_until(KEY) == until


def test_one_that_is_over_is_no_lock(monkeypatch: pytest.MonkeyPatch, weed: S3Server, locking: str) -> None:
    store = s3_store(weed, locking)
    save(store, KEY, b"x")
    head = store._bucket.head(KEY)
    past = type(head)(head.size, head.modified, head.etag, "", datetime.now(UTC) - timedelta(seconds=1))
    monkeypatch.setattr(store._bucket, "head", lambda _: past)
    assert store.locked_until(KEY) is None


def test_a_legal_hold_is_for_ever(weed: S3Server, locking: str) -> None:
    store = s3_store(weed, locking)
    save(store, KEY, b"x")
    weed.client().put_object_legal_hold(Bucket=locking, Key=KEY, LegalHold={"Status": "ON"})
    assert store.locked_until(KEY) == FOREVER


def test_a_store_that_does_not_say_is_trouble(weed: S3Server, locking: str) -> None:
    """Nothing may be deleted where a lock cannot be asked about."""
    store: S3Store = s3_store(weed, locking, who=PUT_ONLY)
    with pytest.raises(StoreError):
        store.locked_until(KEY)
