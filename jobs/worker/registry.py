"""The rows of worker_processes: who is alive."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from jobs.models import WorkerProcess


@dataclass(frozen=True)
class Identity:
    """A process that takes jobs or does upkeep. `name` is unique per start and goes into locked_by;
    `client_majors` are those of the client tools it can use."""

    name: str
    role: str
    concurrency: int = 0
    client_majors: tuple[int, ...] = ()


def new_name(role: str) -> str:
    """Of a process about to be started by this one; never used twice."""
    return f"{socket.gethostname()[-150:]}:{os.getpid()}:{role}:{secrets.token_hex(4)}"


def beat(identity: Identity, *, stopping: bool = False) -> None:
    """Say that the process is alive; makes the row if need be."""
    WorkerProcess.objects.update_or_create(
        name=identity.name,
        defaults={"heartbeat_at": Now(), "stopping": stopping},
        create_defaults={
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "role": identity.role,
            "concurrency": identity.concurrency,
            "client_majors": list(identity.client_majors),
        },
    )


def leave(identity: Identity) -> None:
    WorkerProcess.objects.filter(name=identity.name).delete()


def forget_dead() -> int:
    """Delete the rows of processes not heard of for ten stale periods. An upkeep duty."""
    silent = timedelta(seconds=10 * settings.STALE_SECONDS)
    return WorkerProcess.objects.filter(heartbeat_at__lt=Now() - silent).delete()[0]
