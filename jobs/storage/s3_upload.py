"""Writing one object of unknown size to S3: one PUT when it is small, else a multipart upload."""

from __future__ import annotations

import hashlib
import mmap
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from .base import AlreadyExists, ObjectMissing, Stop, StoreError, TokenSink, Writer, never
from .retry import Patience
from .s3_bucket import WRITER, Bucket, Head
from .s3_errors import Denied, NotImplementedByStore, UploadGone
from .s3_parts import MOST_PARTS, PartBody, PartSender, part_size

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

T = TypeVar("T")

ABORT_SECONDS = 5.0  # a store that hangs must not hold up a cancel or a shutdown


class S3Writer(Writer):
    """Parts carry Content-MD5, which the store verifies; `commit` looks at the stored size and ETag."""

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        *,
        size_hint: int | None,
        content_type: str,
        on_token: TokenSink,
        stop: Stop,
        overwrite: bool = False,
    ) -> None:
        self._bucket = bucket
        self._key = key
        self._size_hint = size_hint
        self._content_type = content_type
        self._on_token = on_token
        self._overwrite = overwrite
        self._nonce = uuid4().hex
        self._sender = PartSender(self._send_part, stop)
        self._patience = bucket.patience(lambda: self._sender.closed or stop())
        self._digests: dict[int, bytes] = {}  # MD5 of each part; of an object in one piece as number 0
        self._number = 1
        self._buffer: mmap.mmap | None = None
        self._view = memoryview(b"")
        self._filled = 0
        self._published = False  # an attempt was made: the object may be there
        self._over = False
        self._clean = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._over:
            raise ValueError("this object is committed or aborted")
        rest = memoryview(data).cast("B")
        while len(rest):
            if self._filled == len(self._view):
                self._next_part()
            taken = rest[: len(self._view) - self._filled]
            self._view[self._filled : self._filled + len(taken)] = taken
            self._filled += len(taken)
            self.size += len(taken)
            rest = rest[len(taken) :]

    def commit(self) -> None:
        if self._over:
            raise ValueError("this object is committed or aborted")
        if self.token:
            self._send_buffer()
            self._sender.drain()
            self._publish(self._complete)
        else:
            self._publish(self._put)
        self._verify()
        self._over = True
        self._sender.close(0)
        self._drop_buffer()

    def abort(self) -> bool:
        if self._over:
            return self._clean
        self._over = True
        self._drop_buffer()
        quiet = self._sender.close(ABORT_SECONDS / 2)
        self._clean = _within(ABORT_SECONDS, self._remove) and quiet
        return self._clean

    def _next_part(self) -> None:
        if self._buffer is not None:
            if not self.token:
                self._begin()
            self._send_buffer()
        if self._number > MOST_PARTS:
            raise StoreError(f"{self._bucket.where(self._key)}: larger than S3 allows (5 TiB).")
        self._buffer = self._sender.take(part_size(self._number, self._size_hint))
        self._view, self._filled = memoryview(self._buffer), 0

    def _begin(self) -> None:
        tries = 0

        def create() -> str:
            nonlocal tries
            tries += 1
            started = self._call(
                "start the upload",
                lambda s3: s3.create_multipart_upload(**self._object(), **self._description()),
            )
            return started["UploadId"]

        self.token = self._patience.run(create)
        self._on_token(self.token)
        if tries > 1:  # an answer was lost, perhaps with it the name of an upload
            with suppress(StoreError):
                self._bucket.abort_uploads(self._key, but=self.token)

    def _send_buffer(self) -> None:
        if self._buffer is not None and self._filled:
            self._sender.submit(self._number, self._buffer, self._filled)
            self._number += 1
        self._drop_buffer()

    def _drop_buffer(self) -> None:
        self._buffer, self._view, self._filled = None, memoryview(b""), 0

    def _send_part(self, number: int, data: memoryview) -> str:
        digest = self._digest(number, data)
        answer = self._patience.run(
            lambda: self._call(
                f"store part {number}",
                lambda s3: s3.upload_part(
                    **self._object(),
                    UploadId=self.token,
                    PartNumber=number,
                    Body=cast("Any", PartBody(data)),
                    ContentMD5=digest,
                ),
            )
        )
        return answer["ETag"]

    def _publish(self, attempt: Callable[[dict[str, Any]], None]) -> None:
        """Make the object visible. When an answer was lost, the object itself says whose it is."""
        self._published = True
        try:
            self._patience.run(lambda: self._try_publish(attempt))
        except (AlreadyExists, UploadGone) as error:
            found = self._look()
            if found is not None and found.writer == self._nonce:
                return
            self._published = False  # what is there is another writer's
            raise (_exists(self._bucket, self._key) if found is not None else error) from error

    def _try_publish(self, attempt: Callable[[dict[str, Any]], None]) -> None:
        if self._overwrite:
            attempt({})
        elif self._bucket.conditional:
            try:
                attempt({"IfNoneMatch": "*"})
            except NotImplementedByStore:
                self._bucket.conditional = False
        if not (self._overwrite or self._bucket.conditional):
            if self._look() is not None:
                raise _exists(self._bucket, self._key)
            attempt({})

    def _put(self, condition: dict[str, Any]) -> None:
        data = self._view[: self._filled]
        digest = self._digest(0, data)
        self._call(
            "store it",
            lambda s3: s3.put_object(
                **self._object(),
                **self._description(),
                **condition,
                Body=cast("Any", PartBody(data)),
                ContentMD5=digest,
            ),
        )

    def _complete(self, condition: dict[str, Any]) -> None:
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in sorted(self._sender.etags.items())]
        self._call(
            "complete the upload",
            lambda s3: s3.complete_multipart_upload(
                **self._object(),
                **condition,
                UploadId=self.token,
                MultipartUpload=cast("Any", {"Parts": parts}),
            ),
        )

    def _verify(self) -> None:
        where = self._bucket.where(self._key)
        try:
            found = self._patience.run(lambda: self._bucket.head(self._key))
        except Denied:
            return  # a key that may only put: the store checked every part's digest
        except ObjectMissing as error:
            raise StoreError(f"{where}: the store took the object but does not have it.") from error
        if found.size != self.size:
            raise StoreError(
                f"{where}: {found.size} bytes are stored but {self.size} were sent. "
                "Run the backup again and have the store checked."
            )
        self.verified = found.etag.strip('"') == self._expected_etag()

    def _digest(self, number: int, data: memoryview) -> str:
        """As Content-MD5."""
        self._digests[number] = hashlib.md5(data, usedforsecurity=False).digest()
        return b64encode(self._digests[number]).decode()

    def _expected_etag(self) -> str:
        """What a store says of exactly these bytes, unless it encrypts them with keys of its own."""
        if 0 in self._digests:
            return self._digests[0].hex()
        digests = b"".join(digest for _, digest in sorted(self._digests.items()))
        return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(self._digests)}"

    def _look(self) -> Head | None:
        """The object as it is stored; None when it is missing or may not be looked at."""
        try:
            return self._patience.run(lambda: self._bucket.head(self._key))
        except (ObjectMissing, Denied):
            return None

    def _remove(self) -> None:
        patience = Patience(ABORT_SECONDS, never)
        if self.token:
            patience.run(lambda: self._bucket.abort_upload(self._key, self.token))
        if self._published:
            patience.run(self._delete_own)

    def _delete_own(self) -> None:
        try:
            if self._bucket.head(self._key).writer != self._nonce:
                return
        except ObjectMissing:
            return
        self._call("remove the unfinished object", lambda s3: s3.delete_object(**self._object()))

    def _call(self, doing: str, operation: Callable[[S3Client], T]) -> T:
        return self._bucket.call(doing, self._key, operation)

    def _object(self) -> Any:
        return {"Bucket": self._bucket.bucket, "Key": self._key}

    def _description(self) -> Any:
        return {"ContentType": self._content_type, "Metadata": {WRITER: self._nonce}}


def _exists(bucket: Bucket, key: str) -> AlreadyExists:
    return AlreadyExists(f"{bucket.where(key)} exists already and is never overwritten.")


def _within(seconds: float, step: Callable[[], None]) -> bool:
    """Run `step` for at most so long; False when it failed or is not done (it goes on by itself)."""
    done = threading.Event()

    def run() -> None:
        with suppress(StoreError):  # what is left is named by the token and discarded later
            step()
            done.set()

    thread = threading.Thread(target=run, name="pgbr-s3-abort", daemon=True)
    thread.start()
    thread.join(seconds)
    return done.is_set()
