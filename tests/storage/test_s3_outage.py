"""Uploads and reads against a store that breaks in the middle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from jobs.storage.base import ObjectMissing, Stopped, StoreError
from tests.proxy import Proxy
from tests.s3server import S3Server
from tests.storage.stores import PART, content, fetch, pour, s3_store, save, sha

KEY = "db/one.dump"
SOON = 20  # seconds; a store that is away is tried for 60


@pytest.fixture
def proxy(weed: S3Server) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", weed.port)) as proxy:
        yield proxy


def test_upload_survives_a_kill_of_the_server(weed: S3Server, bucket: str) -> None:
    data = content(5 * PART)
    store = s3_store(weed, bucket)
    with store.writer(KEY) as writer:
        writer.write(data[: 3 * PART])
        weed.kill()
        back = threading.Timer(2, weed.restart)
        back.start()
        writer.write(data[3 * PART :])
        writer.commit()
        back.join()
    assert sha(fetch(store, KEY)) == sha(data)
    assert weed.open_uploads(bucket) == []


def test_a_store_that_stays_away_fails_the_upload_and_leaves_only_what_the_token_names(
    weed: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.storage.s3_upload.ABORT_SECONDS", 1.0)
    store = s3_store(weed, bucket, retry_seconds=1)
    writer = store.writer(KEY)
    writer.write(content(2 * PART))
    weed.kill()
    try:
        with pytest.raises(StoreError, match=r"bucket.*db/one\.dump.*Gave up after 1 s") as caught:
            pour(writer, content(6 * PART))
        assert caught.value.transient
        assert writer.abort() is False
    finally:
        weed.restart()
    store.discard(KEY, writer.token)
    assert weed.open_uploads(bucket) == []
    assert weed.keys(bucket) == []


def test_short_outages_are_each_given_the_whole_budget(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    data = content(4 * PART)
    store = s3_store(weed, bucket, endpoint=proxy.url, retry_seconds=1.8)
    with store.writer(KEY) as writer:
        for start in range(0, len(data), 2 * PART):
            proxy.refuse()
            threading.Timer(1, proxy.heal).start()
            writer.write(data[start : start + 2 * PART])
            while len(writer._sender.etags) < start // PART - 1:  # type: ignore[attr-defined]
                time.sleep(0.02)
        writer.commit()
    assert sha(fetch(store, KEY)) == sha(data)


def test_stop_ends_the_wait_before_the_store_is_given_up(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    stop = threading.Event()
    store = s3_store(weed, bucket, endpoint=proxy.url)
    with store.writer(KEY, stop=stop.is_set) as writer:
        writer.write(content(2 * PART))
        proxy.refuse()
        threading.Timer(0.5, stop.set).start()
        began = time.monotonic()
        with pytest.raises(Stopped):
            pour(writer, content(6 * PART))
        assert time.monotonic() - began < SOON
        proxy.heal()
    assert weed.open_uploads(bucket) == []


def test_stop_also_ends_the_wait_of_a_commit_and_of_a_read(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    stop = threading.Event()
    store = s3_store(weed, bucket, endpoint=proxy.url)
    save(store, KEY, content(PART))
    reading = store.read(KEY, stop=stop.is_set)
    next(reading)
    with store.writer("db/two.dump", stop=stop.is_set) as writer:
        writer.write(b"small")
        proxy.refuse()
        threading.Timer(0.3, stop.set).start()
        began = time.monotonic()
        with pytest.raises(Stopped):
            writer.commit()
        with pytest.raises(Stopped):
            b"".join(reading)
        assert time.monotonic() - began < SOON
        proxy.heal()


def test_stop_and_abort_do_not_wait_for_a_store_that_hangs(
    weed: S3Server, proxy: Proxy, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.storage.s3_upload.ABORT_SECONDS", 1.0)
    stop = threading.Event()
    store = s3_store(weed, bucket, endpoint=proxy.url)
    writer = store.writer(KEY, stop=stop.is_set)
    writer.write(content(2 * PART))
    proxy.stall()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        writer.write(content(6 * PART))
    assert writer.abort() is False
    assert time.monotonic() - began < SOON
    proxy.cut()
    store.discard(KEY, writer.token)
    assert weed.open_uploads(bucket) == []


def test_busy_answers_are_retried(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    store = s3_store(weed, bucket, endpoint=proxy.url)
    proxy.answer_503(times=3)
    save(store, KEY, content(PART + 1))
    proxy.answer_503()
    assert store.stat(KEY).size == PART + 1


@pytest.mark.parametrize(("size", "request_line"), [(100, b"PUT /"), (PART + 1, b"?uploadId=")])
def test_a_lost_answer_of_the_last_request_is_resolved_by_looking(
    weed: S3Server, proxy: Proxy, bucket: str, size: int, request_line: bytes
) -> None:
    data, store = content(size), s3_store(weed, bucket, endpoint=proxy.url)
    with store.writer(KEY) as writer:
        writer.write(data)
        proxy.lose_answer(request_line)
        writer.commit()
    assert proxy.lost.is_set()
    assert sha(fetch(store, KEY)) == sha(data)
    assert weed.open_uploads(bucket) == []


def test_an_object_whose_answer_was_lost_is_removed_when_the_writer_gives_up(
    weed: S3Server, proxy: Proxy, bucket: str
) -> None:
    store = s3_store(weed, bucket, endpoint=proxy.url, retry_seconds=0)
    with store.writer(KEY) as writer:
        writer.write(b"small")
        proxy.lose_answer(b"PUT /")
        with pytest.raises(StoreError, match="does not answer"):
            writer.commit()
        assert weed.keys(bucket) == [KEY]
    assert weed.keys(bucket) == []


def test_read_goes_on_where_it_broke(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    data, store = content(3 * PART), s3_store(weed, bucket, endpoint=proxy.url)
    save(store, KEY, data)
    proxy.cut_after(PART + 12345)
    before = proxy.connections
    assert sha(fetch(store, KEY, 7)) == sha(data[7:])
    assert proxy.connections > before


def test_read_refuses_to_mix_two_objects(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    store = s3_store(weed, bucket, endpoint=proxy.url)
    save(store, KEY, content(3 * PART))
    reading = store.read(KEY)
    next(reading)
    store.put_bytes(KEY, content(3 * PART, seed=2), overwrite=True)
    proxy.cut()
    with pytest.raises(StoreError, match="replaced while it was being read"):
        b"".join(reading)


def test_small_requests_to_a_store_that_is_away_fail_soon(weed: S3Server, proxy: Proxy, bucket: str) -> None:
    store = s3_store(weed, bucket, endpoint=proxy.url, retry_seconds=0.3)
    proxy.refuse()
    for request in (
        store.prepare,
        lambda: store.stat(KEY),
        lambda: list(store.list()),
        lambda: store.delete(KEY),
    ):
        with pytest.raises(StoreError, match="does not answer") as caught:
            request()
        assert caught.value.transient
        assert not isinstance(caught.value, ObjectMissing)
