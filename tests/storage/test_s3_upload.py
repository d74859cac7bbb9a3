"""Multipart uploads: what the store checks, what is left behind, how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from jobs.storage import s3_client
from jobs.storage.base import AlreadyExists, Damaged, StoreError
from jobs.storage.s3 import S3Store
from jobs.storage.s3_bucket import Bucket
from jobs.storage.s3_parts import LARGEST_PART, MIB, MOST_PARTS, part_size
from tests.s3server import PUT_ONLY, S3Server
from tests.storage.stores import PART, content, fetch, s3_store, save, sha

KEY = "db/one.dump"
TIB = 1024 * 1024 * MIB
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("hint", [None, 0, 1, 2_000_000_000, 3 * 1024 * 1024 * MIB, 5 * TIB])
def test_ten_thousand_parts_always_reach_the_largest_object(hint: int | None) -> None:
    sizes = [part_size(number, hint) for number in range(1, MOST_PARTS + 1)]
    assert sum(sizes) >= 5 * TIB
    assert sizes == sorted(sizes)
    assert sizes[0] >= PART
    assert sizes[-1] <= LARGEST_PART


def test_parts_stay_small_and_equal_as_far_as_the_hint_reaches() -> None:
    assert {part_size(number, 30_000 * MIB) for number in range(1, 5001)} == {PART}
    assert {part_size(number, 100_000 * MIB) for number in range(1, 5001)} == {20 * MIB}
    assert part_size(1000, None) == PART


def test_growing_parts_make_one_object(weed: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.storage.s3_upload.part_size", lambda number, _hint: (4 + number) * MIB)
    data, store = content(24 * MIB), s3_store(weed, bucket)
    save(store, KEY, data)
    assert weed.client().head_object(Bucket=bucket, Key=KEY, PartNumber=1)["PartsCount"] == 4
    assert sha(fetch(store, KEY)) == sha(data)


def test_the_token_is_told_before_the_first_part(weed: S3Server, bucket: str) -> None:
    seen: list[tuple[str, list[str]]] = []
    store = s3_store(weed, bucket)
    with store.writer(KEY, on_token=lambda token: seen.append((token, weed.open_uploads(bucket)))) as writer:
        writer.write(content(PART))
        assert seen == []
        writer.write(b"x")
        assert seen == [(writer.token, [writer.token])]
        assert writer.abort() is True
    assert weed.open_uploads(bucket) == []
    assert weed.keys(bucket) == []


def test_abort_ends_only_its_own_upload(weed: S3Server, bucket: str) -> None:
    others = weed.client().create_multipart_upload(Bucket=bucket, Key=KEY)["UploadId"]
    with s3_store(weed, bucket).writer(KEY) as writer:
        writer.write(content(PART + 1))
    assert weed.open_uploads(bucket) == [others]


@pytest.fixture
def damage(weed: S3Server) -> Iterator[tuple[S3Store, list[int]]]:
    """A store whose first `count[0]` part requests lose a bit on the way."""
    store, count = s3_store(weed, weed.new_bucket(), region="eu-central-1"), [0]

    def spoil(request: Any, **_: Any) -> None:
        if count[0] > 0:
            count[0] -= 1
            sent = bytes(request.body.read())
            request.body = bytes([sent[0] ^ 1]) + sent[1:]

    client = s3_client.client(store._bucket._parameters)
    for operation in ("UploadPart", "PutObject"):
        client.meta.events.register(f"before-send.s3.{operation}", spoil)
    yield store, count
    for operation in ("UploadPart", "PutObject"):
        client.meta.events.unregister(f"before-send.s3.{operation}", spoil)


@pytest.mark.parametrize("size", [100, PART + 1])
def test_bytes_damaged_on_the_way_are_refused_and_sent_again(
    damage: tuple[S3Store, list[int]], size: int
) -> None:
    store, count = damage
    count[0] = 1
    save(store, KEY, content(size))
    assert count[0] == 0
    assert sha(fetch(store, KEY)) == sha(content(size))


def test_damage_that_does_not_end_fails_the_upload(damage: tuple[S3Store, list[int]]) -> None:
    store, count = damage
    count[0] = 1000
    with pytest.raises(Damaged, match="BadDigest"):
        save(store, KEY, content(PART + 1))
    assert list(store.list()) == []


@pytest.mark.parametrize("size", [100, PART + 1])
def test_an_object_of_another_size_than_was_sent_fails_and_is_removed(weed: S3Server, size: int) -> None:
    store = s3_store(weed, weed.new_bucket(), region="eu-west-3")

    def shorten(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ContentLength"] -= 1

    client = s3_client.client(store._bucket._parameters)
    client.meta.events.register("after-call.s3.HeadObject", shorten)
    with pytest.raises(StoreError, match=f"{size - 1} bytes are stored but {size} were sent"):
        save(store, KEY, content(size))
    client.meta.events.unregister("after-call.s3.HeadObject", shorten)
    assert list(store.list()) == []


def test_a_key_that_may_only_put_can_back_up(weed: S3Server, bucket: str) -> None:
    store = s3_store(weed, bucket, who=PUT_ONLY)
    store.prepare()
    save(store, "small", content(10))
    save(store, "large", content(PART + 1))
    full = s3_store(weed, bucket)
    assert fetch(full, "small") == content(10)
    assert sha(fetch(full, "large")) == sha(content(PART + 1))


@pytest.mark.parametrize(
    ("code", "message", "status"),
    [("NotImplemented", "", 501), ("InvalidArgument", "Unsupported header 'if-none-match' received", 400)],
)
def test_a_store_without_conditional_writes_is_looked_at_first(
    weed: S3Server, bucket: str, code: str, message: str, status: int
) -> None:
    store = s3_store(weed, bucket, region="us-west-2")
    client = s3_client.client(store._bucket._parameters)

    def refuse(params: dict[str, Any], model: Any, **_: Any) -> None:
        if "If-None-Match" in params["headers"]:
            error = {"Code": code, "Message": message}
            answer: Any = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(answer, model.name)

    client.meta.events.register("before-call.s3", refuse)
    try:
        save(store, KEY, content(PART + 1))
        for size in (5, PART + 1):
            with pytest.raises(AlreadyExists):
                save(store, KEY, content(size, seed=2))
    finally:
        client.meta.events.unregister("before-call.s3", refuse)
    assert sha(fetch(store, KEY)) == sha(content(PART + 1))


_GROWTH = """
    import sys
    from jobs.storage.s3 import S3Store

    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * 4096

    endpoint, bucket, access_key = sys.argv[1:]
    secret = sys.stdin.readline()
    store = S3Store(endpoint=endpoint, region="", bucket=bucket, access_key=access_key, secret=secret)
    assert not [name for name in sys.modules if name.startswith("boto")], "imported before it was needed"
    store.prepare()
    before, most, block = resident(), 0, bytes(range(256)) * 1024
    with store.writer("big") as writer:
        for number in range(150_000_000 // len(block)):
            writer.write(block)
            most = max(most, resident()) if number % 20 == 0 else most
        writer.commit()
    for _ in store.read("big"):
        most = max(most, resident())
    print((most - before) // 1_000_000)
"""


def test_memory_stays_flat(weed: S3Server, bucket: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_GROWTH), weed.endpoint, bucket, weed.access_key],
        input=weed.secret_key, capture_output=True, text=True, check=True, timeout=120, cwd=ROOT,
    )  # fmt: skip
    print("grew by", done.stdout.strip(), "MB")
    assert int(done.stdout) < 60


@pytest.mark.parametrize("size", [0, 1000, PART, 2 * PART + 1])
def test_the_store_has_verified_what_its_etag_proves(weed: S3Server, bucket: str, size: int) -> None:
    with s3_store(weed, bucket).writer("a") as writer:
        writer.write(content(size))
        assert not writer.verified
        writer.commit()
        assert writer.verified


def test_an_etag_that_is_no_md5_proves_nothing(
    weed: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of objects that a store encrypts with keys of its own."""
    head = Bucket.head
    monkeypatch.setattr(Bucket, "head", lambda *of: replace(head(*of), etag='"of something else"'))
    with s3_store(weed, bucket).writer("a") as writer:
        writer.write(content(1000))
        writer.commit()
        assert not writer.verified
