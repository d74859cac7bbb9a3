"""What holds for every store, run against a folder and a real S3 server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from jobs.storage.base import AlreadyExists, ObjectMissing, Store, StoreError
from jobs.storage.local import LocalStore
from tests.storage.stores import PART, content, fetch, save, sha

KEY = "db/20261129T230300Z_db_0123abcd-9f00.dump"


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART + 5])
def test_what_was_written_is_what_is_read(store: Store, size: int) -> None:
    data = content(size)
    save(store, KEY, data)
    assert sha(fetch(store, KEY)) == sha(data)
    info = store.stat(KEY)
    assert info.size == size
    assert abs(info.modified - datetime.now(UTC)) < timedelta(minutes=5)


def test_writer_counts_bytes_and_copies_the_callers_buffer(store: Store) -> None:
    buffer = bytearray(b"first")
    with store.writer(KEY) as writer:
        writer.write(buffer)
        buffer[:] = b"other"
        writer.write(memoryview(buffer)[:2])
        assert writer.size == 7
        writer.commit()
    assert fetch(store, KEY) == b"firstot"


@pytest.mark.parametrize("size", [10, 2 * PART + 10])
def test_nothing_is_visible_before_commit_nor_after_leaving_without(store: Store, size: int) -> None:
    with store.writer(KEY) as writer:
        writer.write(content(size))
        assert list(store.list()) == []
    with pytest.raises(ObjectMissing):
        store.stat(KEY)
    with pytest.raises(ObjectMissing):
        fetch(store, KEY)


def test_an_exception_in_the_block_aborts(store: Store) -> None:
    def fail() -> None:
        with store.writer(KEY) as writer:
            writer.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(store.list()) == []


@pytest.mark.parametrize("size", [10, PART + 10])
def test_an_object_is_never_overwritten(store: Store, size: int) -> None:
    save(store, KEY, b"first")
    with pytest.raises(AlreadyExists, match="never overwritten"):
        save(store, KEY, content(size))
    assert fetch(store, KEY) == b"first"


def test_of_concurrent_writers_of_one_key_one_wins(store: Store) -> None:
    barrier = threading.Barrier(4)
    # SeaweedFS looks for the object and makes it in two steps: commits in the same instant may all pass.
    turn = nullcontext() if isinstance(store, LocalStore) else threading.Lock()
    verdicts: list[int | None] = []

    def write(seed: int) -> None:
        with store.writer(KEY) as writer:
            writer.write(content(PART + 1, seed))
            barrier.wait()
            try:
                with turn:
                    writer.commit()
            except AlreadyExists:
                verdicts.append(None)
            else:
                verdicts.append(seed)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [seed for seed in verdicts if seed is not None]
    assert len(verdicts) == 4
    assert len(winners) == 1
    assert fetch(store, KEY) == content(PART + 1, winners[0])


def test_ranges_are_half_open_and_end_with_the_object(store: Store) -> None:
    data = content(3_000_000)
    save(store, KEY, data)
    assert fetch(store, KEY, 10, 20) == data[10:20]
    assert fetch(store, KEY, 2_999_990) == data[-10:]
    assert fetch(store, KEY, 2_999_990, 9_999_999) == data[-10:]
    assert fetch(store, KEY, 0, 0) == b""
    assert fetch(store, KEY, 3_000_000) == b""
    assert fetch(store, KEY, 4_000_000, 4_000_010) == b""
    assert max(len(chunk) for chunk in store.read(KEY)) <= 1024 * 1024


def test_delete_is_idempotent_and_touches_only_its_object(store: Store) -> None:
    for key in (KEY, KEY + ".json", "db/other.dump"):
        store.put_bytes(key, b"x")
    store.delete(KEY)
    store.delete(KEY)
    store.delete("never/was/there.dump")
    assert sorted(info.key for info in store.list()) == [KEY + ".json", "db/other.dump"]


def test_list_is_by_prefix(store: Store) -> None:
    keys = ["a-b/1.dump", "a/1.dump", "a/1.dump.json", "a/deep/2.dump", "b/1.dump"]
    for key in reversed(keys):
        store.put_bytes(key, key.encode())
    for prefix, expected in {
        "": keys, "a/": keys[1:4], "a/1": keys[1:3], "a/deep/2.dump": keys[3:4], "b": keys[4:], "no": [],
    }.items():  # fmt: skip
        found = list(store.list(prefix))
        assert sorted(info.key for info in found) == expected
        assert all(info.size == len(info.key) for info in found)


def test_small_objects_are_overwritten_only_on_request(store: Store) -> None:
    store.put_bytes(KEY + ".json", b"{}")
    with pytest.raises(AlreadyExists):
        store.put_bytes(KEY + ".json", b"[]")
    store.put_bytes(KEY + ".json", b"[]", overwrite=True)
    assert fetch(store, KEY + ".json") == b"[]"


def test_discard_removes_an_unfinished_write_and_never_a_finished_object(store: Store) -> None:
    tokens: list[str] = []
    save(store, KEY, content(PART + 1), on_token=tokens.append)
    unfinished = store.writer("db/second.dump", on_token=tokens.append)
    unfinished.write(content(2 * PART + 1))
    assert tokens[1] == unfinished.token
    store.discard(KEY, tokens[0])
    store.discard("db/second.dump", tokens[1])
    store.discard("db/second.dump", tokens[1])
    store.discard("db/second.dump", "")
    with pytest.raises(StoreError):
        unfinished.commit()
    unfinished.abort()
    assert [info.key for info in store.list()] == [KEY]
    assert sha(fetch(store, KEY)) == sha(content(PART + 1))


def test_writer_refuses_use_after_its_end(store: Store) -> None:
    with store.writer(KEY) as writer:
        writer.commit()
    uses: list[Callable[[], None]] = [lambda: writer.write(b"more"), writer.commit]
    for use in uses:
        with pytest.raises(ValueError, match="committed or aborted"):
            use()
    assert store.stat(KEY).size == 0


def test_probe_of_a_good_store_passes_and_leaves_nothing(store: Store) -> None:
    for prefix in ("", "some/where"):
        probe = store.probe(prefix)
        assert (probe.put, probe.get, probe.list, probe.delete) == (None, None, None, None)
        assert probe.usable
    assert list(store.list()) == []


def test_prepare_twice_is_fine(store: Store) -> None:
    store.prepare()
