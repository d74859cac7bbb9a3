"""One botocore session per process and one client per set of parameters.

botocore costs some 25 MB and 0.2 s: it is imported with the first client, and every further client
of the same session is cheap. Clients are thread-safe, sessions are not, and neither survives a fork.
"""

from __future__ import annotations

import importlib
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from jobs.addresses import leads_to_metadata

from .base import StoreError

if TYPE_CHECKING:
    from botocore.session import Session
    from mypy_boto3_s3.client import S3Client

CONNECT_SECONDS = 10  # also the longest that one block of a body may wait to be sent
READ_SECONDS = 60
IMPATIENT_SECONDS = 10  # where somebody waits, and holds a thread of the site
_NO_FILE = (None, None, os.devnull, None)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What tells one client from another. An empty endpoint is AWS itself."""

    endpoint: str
    region: str
    access_key: str
    secret: str = field(repr=False)
    force_path_style: bool
    read_seconds: int = READ_SECONDS

    def check(self) -> None:
        """StoreError for an endpoint that cannot be used or would leak a password in messages."""
        if not self.endpoint:
            return
        try:
            parts = urlsplit(self.endpoint)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StoreError("The storage's endpoint must look like https://s3.example.com[:port].")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise StoreError(
                "The storage's endpoint must hold no user, password or query: use the key fields."
            )


_lock = threading.Lock()
_session: Session | None = None
_clients: dict[Parameters, S3Client] = {}


def preload() -> None:
    """Import what every client needs. Done before a fork, the children share it instead of each having a
    copy of its own, which is what a worker grows by in its first backup to S3."""
    for name in ("botocore.session", "botocore.client", "botocore.httpsession", "botocore.handlers"):
        importlib.import_module(name)


def warm_up() -> None:
    """Load what the first client of this process would, some 20 MB: it has its size before it is used."""
    preload()
    _create(Parameters("http://127.0.0.1", "us-east-1", "nobody", "nothing", True))


def client(parameters: Parameters) -> S3Client:
    with _lock:
        if parameters not in _clients:
            _clients[parameters] = _create(parameters)
        return _clients[parameters]


def _create(parameters: Parameters) -> S3Client:
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if parameters.force_path_style else "auto"},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=parameters.read_seconds,
        tcp_keepalive=True,
        max_pool_connections=50,
        retries={"total_max_attempts": 1, "mode": "standard"},  # `retry.Patience` is the one that retries
        # Newer checksum headers are unknown to many stores; every one of them verifies Content-MD5.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        user_agent_extra="pgbr",
    )
    try:
        made = _shared_session().create_client(
            "s3",
            region_name=parameters.region or "us-east-1",
            endpoint_url=parameters.endpoint or None,
            aws_access_key_id=parameters.access_key,
            aws_secret_access_key=parameters.secret,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise StoreError(f"The storage's settings cannot be used: {error}") from error
    made.meta.events.register("before-send.s3", _refuse_metadata)
    return cast("S3Client", made)


def _refuse_metadata(request: Any, **_: Any) -> None:
    """No storage is link-local, but there clouds give out the credentials of the machine."""
    if leads_to_metadata(urlsplit(request.url).hostname or ""):
        raise StoreError("The storage's endpoint leads to this machine's own cloud services: not allowed.")


def _shared_session() -> Session:
    global _session
    if _session is None:
        from botocore.session import Session

        # The account's own ~/.aws and AWS_PROFILE and AWS_ENDPOINT_URL must not change what a storage says.
        private: Any = {
            "profile": (None, None, None, None),
            "config_file": _NO_FILE,
            "credentials_file": _NO_FILE,
            "ignore_configured_endpoint_urls": (None, None, True, None),
        }
        _session = Session(session_vars=private)
    return _session


def _forget_after_fork() -> None:
    global _lock, _session
    _lock = threading.Lock()
    _session = None
    _clients.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
