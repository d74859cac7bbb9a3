"""One bucket: botocore's calls with their errors translated, and what an object says of itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from . import s3_client
from .base import FOREVER, Stop, StoreError, never
from .retry import Patience
from .s3_errors import UploadGone, strange, translate

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

T = TypeVar("T")

WRITER = "pgbr-writer"  # object metadata: which writer made it
QUICK_SECONDS = 10.0  # how long small requests put up with a store that is away


@dataclass(frozen=True, slots=True)
class Head:
    size: int
    modified: datetime
    etag: str
    writer: str
    locked_until: datetime | None = None  # as the store says it, also when that is past


class Bucket:
    def __init__(
        self, name: str, parameters: s3_client.Parameters, bucket: str, retry_seconds: float
    ) -> None:
        parameters.check()
        self.name = name or urlsplit(parameters.endpoint).netloc or "AWS S3"
        self.bucket = bucket
        self.region = parameters.region
        self.retry_seconds = retry_seconds
        self.conditional = True  # until the store says that it does not know If-None-Match
        self._parameters = parameters

    def call(self, doing: str, key: str, operation: Callable[[S3Client], T]) -> T:
        """One attempt; StoreError instead of whatever botocore raises."""
        from botocore.exceptions import BotoCoreError, ClientError

        client = s3_client.client(self._parameters)
        try:
            return operation(client)
        except (BotoCoreError, ClientError, OSError) as error:
            raise translate(error, self.where(key), doing) from error
        except (LookupError, TypeError, ValueError, RecursionError):
            # Missing fields, dates that are none, redirects in a circle: botocore believes what it reads.
            raise strange(self.where(key), doing) from None

    def quick(self, doing: str, key: str, operation: Callable[[S3Client], T]) -> T:
        return self.briefly(lambda: self.call(doing, key, operation))

    def briefly(self, attempt: Callable[[], T]) -> T:
        """Retried, but not for as long as an upload would be: somebody waits for the answer."""
        return Patience(min(QUICK_SECONDS, self.retry_seconds), never).run(attempt)

    def patience(self, stop: Stop) -> Patience:
        return Patience(self.retry_seconds, stop)

    def where(self, key: str) -> str:
        place = f"Storage {self.name}, bucket {self.bucket}"
        return f"{place}, key {key}" if key else place

    def head(self, key: str) -> Head:
        return self.call("look at the object", key, lambda s3: self._head(s3, key))

    def _head(self, s3: S3Client, key: str) -> Head:
        found = s3.head_object(Bucket=self.bucket, Key=key)
        return Head(
            size=found["ContentLength"],
            modified=found["LastModified"],
            etag=found["ETag"],
            writer=found.get("Metadata", {}).get(WRITER, ""),
            locked_until=_locked_until(found),
        )

    def abort_upload(self, key: str, upload_id: str) -> None:
        """One attempt to end one multipart upload; fine when it is gone. A finished object stays."""
        with suppress(UploadGone):
            self.call(
                "remove the unfinished upload",
                key,
                lambda s3: s3.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id),
            )

    def abort_uploads(self, key: str, *, but: str = "") -> None:
        """End the multipart uploads of this very key, except one. Not every store lists them, and not to
        every access key: then they stay for the bucket's lifecycle rule."""
        try:
            found = self.call(
                "list its unfinished uploads",
                key,
                lambda s3: s3.list_multipart_uploads(Bucket=self.bucket, Prefix=key),
            )
        except StoreError as error:
            if error.transient:
                raise
            return
        for upload in found.get("Uploads", []):
            if upload["Key"] == key and upload["UploadId"] != but:
                self.abort_upload(key, upload["UploadId"])


def _locked_until(found: HeadObjectOutputTypeDef) -> datetime | None:
    if found.get("ObjectLockLegalHoldStatus") == "ON":
        return FOREVER
    return found.get("ObjectLockRetainUntilDate")
