"""The web server and one worker as two children that live and end together."""

from __future__ import annotations

import ipaddress
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType, TracebackType
from urllib.parse import urlsplit

DEFAULT = ("127.0.0.1", 8000)
START_SECONDS = 30.0
LOOK_SECONDS = 0.2
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def address(base_url: str) -> tuple[str, int]:
    """Where to listen: what BASE_URL names if that is plain http on this machine, else 127.0.0.1:8000."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    loopback = host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
    if parts.scheme != "http" or not loopback or ":" in host:
        return DEFAULT
    return ("127.0.0.1" if host == "localhost" else host), parts.port or 80


def taken(host: str, port: int) -> bool:
    """Does somebody listen there?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


class Pair:
    """gunicorn and runworker. A signal to us ends both, and so does the end of either.

    They get sessions of their own, so that Ctrl-C reaches them once, through us. A second Ctrl-C is passed
    on too: it ends the worker's grace. Where setpriv exists they also end when we are killed.
    """

    def __init__(self, checkout: Path, bind: str) -> None:
        config = str(checkout / "gunicorn.conf.py")
        self._checkout = checkout
        self._commands = {
            "dashboard": [sys.executable, "-m", "gunicorn", "--config", config, "--bind", bind],
            "worker": [sys.executable, str(checkout / "manage.py"), "runworker"],
        }
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False

    def __enter__(self) -> Pair:
        for number in STOPS:
            signal.signal(number, self._on_signal)
        for name, command in self._commands.items():
            self._children[name] = subprocess.Popen(
                [*_end_with_us(), *command],
                cwd=self._checkout,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        for child in self._children.values():
            child.wait()

    def answers(self, host: str, port: int) -> bool:
        """Wait until the web server takes connections; false when it does not come to that."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and not self._stopping and not self._ended():
            try:
                socket.create_connection((host, port), timeout=1).close()
            except OSError:
                time.sleep(LOOK_SECONDS)
            else:
                return True
        return False

    def wait(self) -> int:
        """Until both have ended; 0 when somebody asked for it, 1 when one ended by itself."""
        failed = False
        while len(self._ended()) < len(self._children):
            if self._ended() and not self._stopping:
                failed = True
                print(f"The {self._ended()[0]} ended by itself: stopping.", file=sys.stderr, flush=True)
                self._stop()
            time.sleep(LOOK_SECONDS)
        return 1 if failed or not self._stopping else 0

    def _ended(self) -> list[str]:
        return [name for name, child in self._children.items() if child.poll() is not None]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._stop()

    def _stop(self) -> None:
        self._stopping = True
        for child in self._children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _end_with_us() -> list[str]:
    path = shutil.which("setpriv") if sys.platform == "linux" else None
    known = path and subprocess.run([path, "--pdeathsig", "TERM", "true"], capture_output=True, check=False)
    return [path, "--pdeathsig", "TERM", "--"] if path and known and known.returncode == 0 else []
