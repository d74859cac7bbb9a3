"""Run as a script: a supervisor over children that misbehave in the way the argument names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgbr.settings")
django.setup()

from jobs.worker import supervisor  # noqa: E402  Django must be set up first
from jobs.worker.registry import Identity  # noqa: E402

Ready = Callable[[], None]


def until_terminated(ready: Ready) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    ready()
    signal.pause()


def steady(identity: Identity, predecessor: str | None, ready: Ready) -> None:
    print(f"ALIVE {identity.name} after {predecessor}", flush=True)
    until_terminated(ready)


def silent(identity: Identity, predecessor: str | None, ready: Ready) -> None:
    if predecessor is None:
        time.sleep(3600)
    steady(identity, predecessor, ready)


def crashing(identity: Identity, predecessor: str | None, ready: Ready) -> None:
    print(f"ALIVE {identity.name} after {predecessor}", flush=True)
    raise RuntimeError("as the test wants")


def main(kind: str) -> int:
    supervisor.READY_SECONDS = 1.0
    roles = {"silent": silent, "crashing": crashing, "steady": steady, "stranger": steady}
    if kind == "stranger":
        # As PID 1 inherits orphans: a child that ends and that the supervisor has never started.
        subprocess.Popen(["sh", "-c", "exit 3"])
    return supervisor.Supervisor([supervisor.Child("backup", roles[kind])]).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
