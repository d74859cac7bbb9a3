"""botocore's exceptions -> StoreError with the bucket, the key and what to do about it.

botocore is imported inside functions: a worker that only uses folders never pays for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import AlreadyExists, Damaged, ObjectMissing, StoreError

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

ADVICE = {
    "AccessDenied": "The access key lacks this permission: allow s3:PutObject, s3:GetObject, s3:ListBucket, "
    "s3:AbortMultipartUpload (and s3:DeleteObject, if pgbr is to remove old backups) on this bucket.",
    "AccountProblem": "The storage account is blocked: ask the provider.",
    "AuthorizationHeaderMalformed": "The region is wrong: set the bucket's own region.",
    "BucketAlreadyExists": "The name is taken by somebody else: choose another bucket.",
    "EntityTooLarge": "The object is larger than this store accepts: use another storage.",
    "ExpiredToken": "The access key has expired: enter a new one.",
    "InvalidAccessKeyId": "The access key id is unknown to the store: check it for typos, or make a new key.",
    "InvalidBucketName": "The bucket's name is not valid: 3 to 63 of a-z, 0-9, '.' and '-'.",
    "InvalidObjectState": "The object is archived (Glacier): restore it at the provider first.",
    "KeyTooLongError": "The key is too long: shorten the storage's prefix.",
    "NoSuchBucket": "The bucket does not exist: create it, or correct the storage's bucket.",
    "NoSuchUpload": "Somebody else ended this upload: a lifecycle rule that is too eager, or a clean-up.",
    "PermanentRedirect": "The bucket lives in another region: set the storage's region and endpoint.",
    "QuotaExceeded": "The storage is full: free space or raise the quota.",
    "RequestTimeTooSkewed": "This machine's clock is wrong: set it (NTP), then try again.",
    "SignatureDoesNotMatch": "The secret access key is wrong (or a proxy changes requests): enter it again.",
}
_SAME_AS = {
    "403": "AccessDenied", "AllAccessDisabled": "AccessDenied", "Forbidden": "AccessDenied",
    "AccessForbidden": "AccessDenied", "301": "PermanentRedirect", "MovedPermanently": "PermanentRedirect",
    "IllegalLocationConstraintException": "AuthorizationHeaderMalformed", "InvalidToken": "ExpiredToken",
    "InvalidSecurity": "SignatureDoesNotMatch", "XMinioStorageFull": "QuotaExceeded",
    "InsufficientStorage": "QuotaExceeded", "507": "QuotaExceeded", "NotEnoughSpace": "QuotaExceeded",
    "StorageFull": "QuotaExceeded", "QuotaExceededException": "QuotaExceeded",
    "XMinioAdminBucketQuotaExceeded": "QuotaExceeded",
}  # fmt: skip
_BUSY = {
    "ConditionalRequestConflict", "InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable",
    "SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded",
}  # fmt: skip
LONGEST_DETAIL = 1000  # of what the store says
_TLS_PERMANENT = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")


class NotImplementedByStore(StoreError):
    """The store knows the request but not this header or feature."""


class Denied(StoreError):
    """The access key is known but may not do this."""


class UploadGone(StoreError):
    """The multipart upload does not exist (any more)."""


class RangeOutside(StoreError):
    """The requested range begins at or behind the object's end."""


_KINDS: dict[str, type[StoreError]] = {
    "AccessDenied": Denied, "NoSuchUpload": UploadGone, "InvalidRange": RangeOutside, "416": RangeOutside,
    "NoSuchKey": ObjectMissing, "NotFound": ObjectMissing, "404": ObjectMissing,
    "PreconditionFailed": AlreadyExists, "412": AlreadyExists,
    "BucketAlreadyOwnedByYou": AlreadyExists,
    "BadDigest": Damaged, "IncompleteBody": Damaged, "XAmzContentSHA256Mismatch": Damaged,
}  # fmt: skip


def translate(error: Exception, where: str, doing: str) -> StoreError:
    """`where` names storage, bucket and key; `doing` is the attempted thing ("read", "list" …)."""
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        HTTPClientError,
        IncompleteReadError,
        ReadTimeoutError,
        ResponseStreamingError,
        SSLError,
    )
    from botocore.exceptions import ConnectionError as NoConnection

    said = f"{where}: cannot {doing}: "
    if isinstance(error, ClientError):
        return _refused(error, said)
    if isinstance(error, SSLError) and any(word in str(error) for word in _TLS_PERMANENT):
        advice = "Check that the endpoint speaks https, and that its certificate is valid and its CA trusted."
        return StoreError(f"{said}TLS failed ({error}). {advice}")
    away = (NoConnection, HTTPClientError, ReadTimeoutError, IncompleteReadError, ResponseStreamingError)
    if isinstance(error, BotoCoreError) and not isinstance(error, away):
        return StoreError(f"{said}{error}")
    advice = "Check the endpoint, the network, and that the store is up."
    return StoreError(f"{said}the store does not answer ({_short(error)}). {advice}", transient=True)


def strange(where: str, doing: str) -> StoreError:
    """For an answer that botocore, or we, cannot make sense of."""
    return StoreError(
        f"{where}: cannot {doing}: the answer is none that an S3-compatible store gives. Check the endpoint."
    )


def _short(error: Exception) -> str:
    return str(error)[:LONGEST_DETAIL].strip().rstrip(".") or type(error).__name__


def _refused(error: ClientError, said: str) -> StoreError:
    answer = error.response.get("Error", {})
    code = str(answer.get("Code", ""))[:100]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    detail = str(answer.get("Message", ""))[:LONGEST_DETAIL].strip().rstrip(".")
    text = f"{said}{code}: {detail}." if detail else f"{said}{code}."
    code = _SAME_AS.get(code, code)
    kind = _kind(code, status, detail)
    if code in ADVICE:
        return kind(f"{text} {ADVICE[code]}")
    busy = kind is StoreError and (code in _BUSY or status >= 500 or status in (408, 429))
    return kind(text, transient=busy or kind is Damaged)


def _kind(code: str, status: int, detail: str) -> type[StoreError]:
    # Backblaze says of some headers that they are not implemented, of others that they are invalid.
    unknown = code == "InvalidArgument" and "unsupported header" in detail.lower()
    if code == "NotImplemented" or status == 501 or unknown:
        return NotImplementedByStore
    return _KINDS.get(code, StoreError)
