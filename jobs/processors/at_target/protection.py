"""Which databases nothing may be restored into: those marked as protected, and pgbr's own."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from jobs.crypto import CannotDecrypt
from jobs.models import Database
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, InvalidConninfo
from jobs.processors.at_target.sameness import meets, try_lock
from jobs.processors.at_target.sessions import Session
from jobs.targets import conninfo_for

MOST_SECONDS = 30.0  # for servers of which it is not known that they are the one


def protected_by_address(conninfo: Conninfo, name: str) -> str | None:
    """The reason why the database called `name` at `conninfo`'s server must stay as it is; None: none is
    known. What can be told without logging in."""
    for row in Database.objects.filter(protected=True).select_related("user"):
        other = _conninfo(row)
        if other is not None and (other.host_label, other.dbname) == (conninfo.host_label, name):
            return _protected(name)
    return None


def why_protected(
    conninfo: Conninfo, name: str, system_identifier: str, inside: Session | None, folder: Path
) -> str | None:
    """The same for a database that `inside` is in (None: there is no such database), by what it is."""
    if reason := protected_by_address(conninfo, name):
        return reason
    if inside is None:
        return None
    known, unknown = _alike(name, system_identifier)
    until = time.monotonic() + MOST_SECONDS
    # What looks like it and cannot be asked is not worth the risk. The others are anybody's, and may be
    # registered to keep everybody waiting.
    if any(time.monotonic() > until or _is(other, inside, folder, when_silent=True) for other in known):
        return _protected(name)
    if any(time.monotonic() < until and _is(other, inside, folder, when_silent=False) for other in unknown):
        return _protected(name)
    return None


def _alike(name: str, system_identifier: str) -> tuple[list[Conninfo], list[Conninfo]]:
    """Where protected databases of that name are: on servers that were seen to have this identifier, and on
    those of which nobody knows it."""
    known: list[Conninfo] = []
    unknown: list[Conninfo] = []
    for row in Database.objects.filter(protected=True).select_related("user"):
        other, seen = _conninfo(row), _seen(row)
        if other is not None and other.dbname == name:
            if seen and seen == system_identifier:
                known.append(other)
            elif not (seen and system_identifier):
                unknown.append(other)
    return known, unknown


def _protected(name: str) -> str:
    return f'"{name}" is protected: take that off in its registration first, if it is what you want.'


def _seen(row: Database) -> str:
    """The identifier of its server as last seen, "" where nobody has seen it."""
    facts: dict[str, Any] = row.facts if isinstance(row.facts, dict) else {}
    return str(facts.get("system_identifier") or "")


def _is(other: Conninfo, inside: Session, folder: Path, *, when_silent: bool) -> bool:
    try:
        return meets(other, inside, folder)
    except ConnectionFailed:
        return when_silent


def _conninfo(row: Database) -> Conninfo | None:
    try:
        return conninfo_for(row)
    except (CannotDecrypt, InvalidConninfo):
        return None


def is_own(inside: Session) -> bool:
    """Is it the database that pgbr itself runs on?

    Told by a lock that our own connection takes for a moment; of a transaction, which poolers leave whole.
    """
    key = secrets.randbits(62)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s)", [key])
        return not try_lock(inside, key)
