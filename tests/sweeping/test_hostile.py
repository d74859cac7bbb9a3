"""Storages in which more lies than pgbr has put there."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from jobs.models import Storage
from jobs.storage.base import ObjectInfo
from jobs.storage.keys import globals_key, manifest_key, object_key
from jobs.storage.local import LocalStore
from jobs.stores import store_for
from jobs.sweeping import Swept, duty, strays, sweep, sweep_due

from .conftest import Artifact, copy_of, keys, put

pytestmark = pytest.mark.django_db


def file_in(folder: bytes, name: bytes) -> None:
    Path(os.fsdecode(folder)).mkdir(exist_ok=True)
    Path(os.fsdecode(os.path.join(folder, name))).write_bytes(b"x")


@pytest.mark.parametrize(
    ("folder", "name"), [(b"", b"caf\xe9.txt"), (b"caf\xe9", b"20260102T030405Z_shop_01234567-0123.dump")]
)
def test_a_name_that_is_no_utf8_hides_nothing(nas: Storage, folder: bytes, name: bytes) -> None:
    known, stray = put(nas), put(nas)
    copy_of(known)
    file_in(os.path.join(os.fsencode(nas.folder), folder), name)
    swept = sweep(nas)
    assert (swept.known.count, swept.deleted.count, swept.foreign.count, swept.error) == (3, 1, 1, None)
    assert not stray.is_there


def by_hand_to(stray: Artifact, place: str) -> str:
    """Its three objects once more, as somebody may keep them."""
    store = store_for(stray.storage)
    for key in (stray.key, globals_key(stray.key), manifest_key(stray.key)):
        store.put_bytes(f"{place}/{key}", b"".join(store.read(key)))
    return f"{place}/{stray.key}"


def test_what_somebody_has_copied_elsewhere_in_the_bucket_is_theirs(
    s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strays, "OLD", timedelta(0))
    stray = put(s3_storage)
    kept = by_hand_to(stray, "by-hand")
    swept = sweep(s3_storage)
    assert [each["key"] for each in swept.deleted.first] == [stray.key]
    assert [each["key"] for each in swept.strays.first] == [kept]
    assert keys(s3_storage) == sorted([kept, globals_key(kept), manifest_key(kept)])


def test_a_copy_that_nobody_wants_any_more_is_deleted(
    s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifest has the first copy's key."""
    monkeypatch.setattr(strays, "OLD", timedelta(0))
    by_hand_to(put(s3_storage), "off/site")
    s3_storage.prefix = "off/site"
    assert sweep(s3_storage).deleted.count == 1


def test_a_defect_is_that_storages_trouble_alone(nas: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(duty, "look_again", fail)
    assert sweep_due() >= 1
    nas.refresh_from_db()
    assert isinstance(nas.swept, dict)
    assert "A defect in pgbr (ZeroDivisionError)" in nas.swept["error"]


def endless(_: LocalStore, prefix: str = "") -> Iterator[ObjectInfo]:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    for number in itertools.count():
        job = f"{number:032x}"
        key = object_key(prefix, "shop", moment, job[::-1], job, "dump")
        yield ObjectInfo(key, 1, moment)


def test_a_listing_without_an_end_is_ended(nas: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "list", endless)
    monkeypatch.setattr(duty, "LONGEST_SECONDS", 0.3)
    known = put(nas)
    copy_of(known)
    swept = sweep(nas)
    assert "did not end within" in (swept.error or "")
    assert swept.lost.count == 0, "what was not listed is asked for"
    paces = {path: pace for path, pace, _ in settings.UPKEEP_DUTIES}
    assert list(paces.values()).count(paces["jobs.sweeping.sweep_due"]) == 1, "nothing else waits for it"


def test_what_is_remembered_of_a_listing_is_bounded(nas: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "MOST_REMEMBERED", 1000)
    monkeypatch.setattr(strays, "MOST_LOOKED_AT", 0)
    swept = Swept()
    seen = strays.Strays(nas, store_for(nas), swept, float("inf"))
    listed = endless(LocalStore(nas.folder))
    for _ in range(6):
        seen.take(list(itertools.islice(listed, 500)))
    assert (len(seen._done), swept.strays.count) == (1000, 3000)


def test_a_manifest_is_read_up_to_a_limit(nas: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    stray, read = put(nas), LocalStore.read
    taken: list[int] = []

    def counted(*args: Any, **options: Any) -> Iterator[bytes]:
        for chunk in read(*args, **options):
            taken.append(len(chunk))
            yield chunk

    path = Path(nas.folder, manifest_key(stray.key))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes() + b" " * 2 * strays.LARGEST_MANIFEST)
    monkeypatch.setattr(LocalStore, "read", counted)
    assert [each["words"] for each in sweep(nas).strays.first] == [
        "there is no manifest that says who made it"
    ]
    assert sum(taken) <= strays.LARGEST_MANIFEST + 1
