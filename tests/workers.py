"""A real worker: `manage.py runworker` in processes of its own, on the test database, with short timings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from tests.environment import STATE
from tests.waiting import until

CHECKOUT = Path(__file__).resolve().parent.parent
SHORT = {
    "HEARTBEAT_SECONDS": "0.3",
    "STALE_SECONDS": "3",
    "POLL_SECONDS": "0.5",
    "SHUTDOWN_GRACE_SECONDS": "10",
}


def database_url() -> str:
    """The URL of the test database that Django is connected to."""
    given = connection.settings_dict
    user, password = quote(given["USER"]), quote(given["PASSWORD"])
    return f"postgres://{user}:{password}@127.0.0.1:{given['PORT']}/{given['NAME']}"


def process_environment(**environment: Any) -> dict[str, str]:
    """For a manage.py process that shares the test's database, keys and state folder."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return (
        inherited
        | {
            "PGBR_HOME": str(STATE),
            "DATABASE_URL": database_url(),
            "SECRET_KEY": settings.SECRET_KEY,
            "ENCRYPTION_KEY": ",".join(settings.ENCRYPTION_KEYS),
            "PYTHONUNBUFFERED": "1",
        }
        | {name: str(value) for name, value in environment.items()}
    )


def descendants(pid: int) -> list[int]:
    """All living processes below `pid`, however deep."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, pending = [], [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


class RunningWorker:
    def __init__(self, log: Path, arguments: list[str], *, noop: bool, environment: dict[str, Any]) -> None:
        self.log = log
        env = process_environment(**(SHORT | environment))
        env.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings_noop" if noop else "pgbr.settings")
        with open(log, "ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "runworker", *arguments],
                cwd=CHECKOUT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def pids(self) -> list[int]:
        """The supervisor, its processes and everything they run."""
        return [self.pid, *descendants(self.pid)]

    def python_pids(self) -> list[int]:
        """Without the tools: what a kill of the worker alone leaves to the kernel."""
        mark = b"manage.py"
        return [pid for pid in self.pids() if mark in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def child(self, role: str) -> int:
        """The pid of the newest process of a role, once it has been started."""
        mark = f"started the {role} process, pid "

        def newest() -> int | None:
            found = [line.split(mark)[1] for line in self.text().splitlines() if mark in line]
            return int(found[-1].split()[0]) if found else None

        return until(newest, f"the {role} process starts") or 0

    def signal(self, number: int, pids: list[int] | None = None) -> None:
        for pid in self.pids() if pids is None else pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_all(self) -> None:
        """SIGKILL to the supervisor first, so that it starts nothing new, and to all below it."""
        if self.process.poll() is None:
            pids = self.pids()
            self.signal(signal.SIGKILL, pids)
            self.process.wait(20)

    def terminate(self) -> int:
        """SIGTERM to the supervisor alone; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)
