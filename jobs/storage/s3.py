"""An S3-compatible bucket as a store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .base import (
    CHUNK,
    AlreadyExists,
    ObjectInfo,
    ObjectMissing,
    Stop,
    Store,
    StoreError,
    TokenSink,
    Writer,
    ignore_token,
    never,
)
from .s3_bucket import Bucket
from .s3_client import IMPATIENT_SECONDS, READ_SECONDS, Parameters
from .s3_errors import Denied, RangeOutside, strange
from .s3_upload import S3Writer

if TYPE_CHECKING:
    from botocore.response import StreamingBody


class S3Store(Store):
    """`endpoint` empty: AWS. `retry_seconds`: how long an upload or a read waits for a store that is
    away, per outage; a short one also shortens the wait for a single answer. `name` is what messages
    call the storage."""

    def __init__(
        self,
        *,
        endpoint: str,
        region: str,
        bucket: str,
        access_key: str,
        secret: str,
        force_path_style: bool = True,
        retry_seconds: float = 900,
        name: str = "",
    ) -> None:
        silence = READ_SECONDS if retry_seconds > IMPATIENT_SECONDS else IMPATIENT_SECONDS
        parameters = Parameters(
            endpoint.strip(), region.strip(), access_key, secret, force_path_style, silence
        )
        self._bucket = Bucket(name, parameters, bucket, retry_seconds)
        self.name = self._bucket.name

    def writer(
        self,
        key: str,
        *,
        size_hint: int | None = None,
        content_type: str = "application/octet-stream",
        on_token: TokenSink = ignore_token,
        stop: Stop = never,
    ) -> Writer:
        return S3Writer(
            self._bucket, key, size_hint=size_hint, content_type=content_type, on_token=on_token, stop=stop
        )

    def put_bytes(self, key: str, data: bytes, *, overwrite: bool = False, stop: Stop = never) -> None:
        kind = "application/json" if key.endswith(".json") else "application/octet-stream"
        with S3Writer(
            self._bucket,
            key,
            size_hint=len(data),
            content_type=kind,
            on_token=ignore_token,
            stop=stop,
            overwrite=overwrite,
        ) as writer:
            writer.write(data)
            writer.commit()

    def read(
        self, key: str, start: int = 0, end: int | None = None, *, stop: Stop = never
    ) -> Iterator[bytes]:
        """A connection that breaks is taken up again where it was, if the object is still the same."""
        patience, failures, at, etag = self._bucket.patience(stop), 0, start, ""
        while end is None or at < end:
            try:
                body, etag = self._open(key, at, end, etag)
                for chunk in self._chunks(key, body):
                    at, failures = at + len(chunk), 0
                    patience.progress()
                    yield chunk
            except RangeOutside:
                return
            except StoreError as error:
                if not error.transient:
                    raise
                patience.wait(error, failures)
                failures += 1
            else:
                return

    def stat(self, key: str) -> ObjectInfo:
        head = self._bucket.briefly(lambda: self._bucket.head(key))
        return ObjectInfo(key, head.size, head.modified)

    def locked_until(self, key: str) -> datetime | None:
        try:
            until = self._bucket.briefly(lambda: self._bucket.head(key)).locked_until
        except ObjectMissing:
            return None
        return until if until and until > datetime.now(UTC) else None

    def delete(self, key: str) -> None:
        try:
            self._bucket.quick(
                "delete it", key, lambda s3: s3.delete_object(Bucket=self._bucket.bucket, Key=key)
            )
        except ObjectMissing:
            return

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        after: dict[str, Any] = {}
        while True:
            page = self._page(prefix, after)
            try:
                found = [ObjectInfo(o["Key"], o["Size"], o["LastModified"]) for o in page.get("Contents", [])]
                more = page.get("IsTruncated") and {"ContinuationToken": page["NextContinuationToken"]}
            except KeyError:
                raise strange(self._bucket.where(prefix), "list") from None
            yield from found
            if not more:
                return
            after = more

    def discard(self, key: str, token: str) -> None:
        if token:
            self._bucket.briefly(lambda: self._bucket.abort_upload(key, token))

    def discard_all(self, key: str) -> None:
        self._bucket.briefly(lambda: self._bucket.abort_uploads(key))

    def prepare(self) -> None:
        """A key that may put but neither look at nor create the bucket passes: the upload will tell."""
        name = self._bucket.bucket
        try:
            self._bucket.quick("look at the bucket", "", lambda s3: s3.head_bucket(Bucket=name))
        except ObjectMissing:
            self._create()
        except StoreError as error:
            if error.transient:
                raise
            self._explain_refusal()

    def _page(self, prefix: str, after: dict[str, Any], size: int = 1000) -> Any:
        return self._bucket.quick(
            "list",
            prefix,
            lambda s3: s3.list_objects_v2(Bucket=self._bucket.bucket, Prefix=prefix, MaxKeys=size, **after),
        )

    def _explain_refusal(self) -> None:
        """HEAD answers have no body and so no reason; a listing's refusal has one."""
        try:
            self._page("", {}, size=1)
        except Denied:
            return

    def _create(self) -> None:
        name, region = self._bucket.bucket, self._bucket.region
        place: dict[str, Any] = {}
        if region not in ("", "us-east-1"):
            place = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        try:
            self._bucket.quick("create the bucket", "", lambda s3: s3.create_bucket(Bucket=name, **place))
        except AlreadyExists:
            return
        except Denied as error:
            raise StoreError(
                f"{self._bucket.where('')}: the bucket does not exist and this access key may not create it. "
                "Create it, or correct the storage's bucket."
            ) from error

    def _open(self, key: str, start: int, end: int | None, etag: str) -> tuple[StreamingBody, str]:
        wanted: dict[str, Any] = {"Bucket": self._bucket.bucket, "Key": key}
        if start or end is not None:
            wanted["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        if etag:
            wanted["IfMatch"] = etag
        try:
            answer = self._bucket.call("read it", key, lambda s3: s3.get_object(**wanted))
        except AlreadyExists as error:  # a precondition failed, here: the ETag
            raise StoreError(f"{self._bucket.where(key)} was replaced while it was being read.") from error
        if "Range" in wanted and not answer.get("ContentRange", "").startswith(f"bytes {start}-"):
            raise StoreError(f"{self._bucket.where(key)}: the store does not answer ranges.")
        if "ETag" not in answer:
            raise strange(self._bucket.where(key), "read it")
        return answer["Body"], answer["ETag"]

    def _chunks(self, key: str, body: StreamingBody) -> Iterator[bytes]:
        try:
            while chunk := self._bucket.call("read it", key, lambda _s3: body.read(CHUNK)):
                yield chunk
        finally:
            body.close()
