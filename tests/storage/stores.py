"""What the storage tests share: stores on the test server, streams of known content."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import Any

from jobs.storage.base import Store, Writer
from jobs.storage.s3 import S3Store
from jobs.storage.s3_parts import FIRST_PART as PART
from tests.s3server import FULL, Identity, S3Server

__all__ = ["PART", "chunked", "content", "fetch", "pour", "s3_store", "save", "sha"]


def s3_store(weed: S3Server, bucket: str, *, who: Identity = FULL, **changes: Any) -> S3Store:
    settings: dict[str, Any] = {
        "endpoint": weed.endpoint, "region": weed.region, "bucket": bucket, "access_key": who.access_key,
        "secret": who.secret_key, "force_path_style": True, "retry_seconds": 60, "name": "the bucket",
    }  # fmt: skip
    return S3Store(**(settings | changes))


def content(size: int, seed: int = 1) -> bytes:
    """Bytes that differ from part to part, so that swapped or lost parts show."""
    return random.Random(seed).randbytes(size)  # noqa: S311


def chunked(data: bytes, size: int = 1_000_003) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def pour(writer: Writer, data: bytes) -> None:
    for chunk in chunked(data):
        writer.write(chunk)


def save(store: Store, key: str, data: bytes, **settings: Any) -> None:
    with store.writer(key, **settings) as writer:
        pour(writer, data)
        writer.commit()


def fetch(store: Store, key: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join(store.read(key, start, end))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
