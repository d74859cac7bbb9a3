"""A real web server: gunicorn with the repository's configuration, on the test database."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from pgbr.ports import free_port
from tests.waiting import until
from tests.workers import CHECKOUT, process_environment

BACKEND = "django.contrib.auth.backends.ModelBackend"
CSRF = "0123456789abcdefghijklmnopqrstuv"


class Website:
    def __init__(self, log: Path, **environment: Any) -> None:
        self.port = free_port()
        self.log = log
        address = f"127.0.0.1:{self.port}"
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py", "--bind", address],
                cwd=CHECKOUT,
                env=process_environment(BASE_URL=f"http://{address}", **environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        until(self._answers, "the web server answers")

    def request(
        self, user: User, method: str, path: str, body: bytes | Iterable[bytes] | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        """Sent as a logged-in `user`, the CSRF token included. An iterable goes out in chunks unless its
        length is among the headers (`content_length="3"`). An answer may come before all is sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, credentials(user) | named)
        return connection.getresponse()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once
        self.process.wait(30)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            url = f"http://127.0.0.1:{self.port}/api/health"
            return bool(urllib.request.urlopen(url, timeout=1).status == 200)
        except OSError:
            return False


def credentials(user: User) -> dict[str, str]:
    """The headers that a browser of theirs would send."""
    client = Client()
    client.force_login(user, backend=BACKEND)
    session = client.cookies["pgbr_session"].value
    return {"Cookie": f"pgbr_session={session}; pgbr_csrf={CSRF}", "X-CSRFToken": CSRF}
