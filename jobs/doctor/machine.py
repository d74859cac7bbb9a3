"""The machine: Python, time zones, folders and their room, client tools."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings

from jobs.doctor.finding import Finding, broken, doubtful, well
from jobs.pgtools import binaries
from jobs.pgtools.errors import NoClientTools
from jobs.pgtools.toolset import Toolset

OLDEST_PYTHON = (3, 11)
TIME_ZONES = Path("/usr/share/zoneinfo")
LEAST_FREE, LITTLE_FREE = 100 * 10**6, 10**9


def toolsets() -> list[Toolset]:
    return binaries.discover([Path(path) for path in settings.PGBR_PG_BIN], settings.PGTOOLS_FOLDER)


def examine(tools: Sequence[Toolset]) -> Iterator[Finding]:
    yield python()
    yield time_zones()
    yield parent_death()
    yield from client_tools(tools)
    yield from folder("scratch folder", settings.SCRATCH_FOLDER)
    yield from folder("backup folder", settings.BACKUP_FOLDER)


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return broken("python", f"Python {version}", "Use Python 3.11 or newer.")
    return well("python", f"Python {version}")


def time_zones() -> Finding:
    if (TIME_ZONES / "UTC").exists():
        return well("time zones", str(TIME_ZONES))
    remedy = "Install the package tzdata: the embedded PostgreSQL reads it, and so do schedules."
    return broken("time zones", f"{TIME_ZONES} is missing.", remedy)


def parent_death() -> Finding:
    if sys.platform != "linux":
        return well("end of tools", "Tools of a killed worker are ended by its successor.")
    found = shutil.which("setpriv")
    if found:
        return well("end of tools", f"{found} ends a killed worker's tools with it.")
    remedy = "Install util-linux."
    return doubtful("end of tools", "setpriv is missing: pg_dump outlives a killed worker.", remedy)


def client_tools(tools: Sequence[Toolset]) -> Iterator[Finding]:
    """One finding a toolset, and one for each folder of PGBR_PG_BIN that holds none."""
    for toolset in tools:
        codecs = ", ".join(sorted(toolset.compressors))
        yield well("client tools", f"PostgreSQL {toolset.label} in {toolset.bin} ({codecs})")
    for folder_name in settings.PGBR_PG_BIN:
        try:
            binaries.probe(Path(folder_name))
        except NoClientTools as error:
            yield broken("client tools", str(error), f"Correct PGBR_PG_BIN, which names {folder_name}.")
    if not tools:
        remedy = "Run `python manage.py pgtools install MAJOR`, or install postgresql-client."
        yield broken("client tools", "No pg_dump, pg_restore and psql were found.", remedy)


def folder(subject: str, path: Path) -> Iterator[Finding]:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"pgbr")
            file.flush()
        free = shutil.disk_usage(path).free
    except OSError as error:
        remedy = f"Make it writable for {_account()}, or set PGBR_HOME."
        yield broken(subject, f"{path} cannot be written: {error.strerror or error}.", remedy)
        return
    message = f"{path}, {free / 10**9:.1f} GB free"
    if free < LEAST_FREE:
        yield broken(subject, message, "Free some space: the next backup fails.")
    elif free < LITTLE_FREE:
        yield doubtful(subject, message, "Free some space.")
    else:
        yield well(subject, message)


def _account() -> str:
    return "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"
