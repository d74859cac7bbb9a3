"""What a killed process leaves in a store is found without its token."""

from __future__ import annotations

from pathlib import Path

from jobs.storage.base import Store
from jobs.storage.local import LocalStore
from jobs.storage.s3 import S3Store
from tests.proxy import Proxy
from tests.s3server import PUT_ONLY, S3Server
from tests.storage.stores import PART, content, fetch, save

KEY = "db/one.dump"


def test_every_unfinished_write_of_a_key_is_discarded_and_nothing_else(store: Store) -> None:
    """Their process was killed before it could tell a token to anybody: they are never aborted."""
    lost = [store.writer(KEY) for _ in range(2)]
    other = store.writer("db/one.dump.json")
    for writer in (*lost, other):
        writer.write(content(PART + 1))
    store.discard_all(KEY)
    store.discard_all("nowhere/none.dump")
    other.commit()
    assert [info.key for info in store.list()] == ["db/one.dump.json"]
    save(store, KEY, b"finished")
    store.discard_all(KEY)
    assert fetch(store, KEY) == b"finished"


def test_a_folder_keeps_no_part_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    kept = store.writer(f"{KEY}.json")
    store.writer(KEY)
    store.discard_all(KEY)
    assert [path.name for path in (tmp_path / "db").iterdir()] == [kept.token]


def test_a_folder_is_told_the_token_before_there_is_a_file(tmp_path: Path) -> None:
    """Otherwise a kill in between, or a database that is away just then, would leave it for ever."""
    seen: list[list[Path]] = []
    LocalStore(tmp_path).writer(KEY, on_token=lambda _: seen.append(list(tmp_path.rglob("*.part"))))
    assert seen == [[]]


def test_an_upload_whose_start_was_not_answered_is_ended(weed: S3Server, bucket: str) -> None:
    with Proxy(("127.0.0.1", weed.port)) as proxy:
        store = S3Store(
            endpoint=proxy.url,
            region=weed.region,
            bucket=bucket,
            access_key=weed.access_key,
            secret=weed.secret_key,
            retry_seconds=20,
        )
        proxy.lose_answer(b"?uploads")
        save(store, KEY, content(2 * PART))
        assert proxy.lost.is_set()
        assert fetch(store, KEY) == content(2 * PART)
    assert weed.open_uploads(bucket) == []


def test_a_key_pair_that_may_not_list_uploads_is_no_trouble(weed: S3Server, bucket: str) -> None:
    store = S3Store(
        endpoint=weed.endpoint,
        region=weed.region,
        bucket=bucket,
        access_key=PUT_ONLY.access_key,
        secret=PUT_ONLY.secret_key,
    )
    store.discard_all(KEY)
