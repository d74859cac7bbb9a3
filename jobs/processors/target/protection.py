"""Which databases nothing may be restored into: those marked as protected, and pgbr's own."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from jobs.crypto import CannotDecrypt
from jobs.models import Database
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, InvalidConninfo
from jobs.processors.target.sameness import meets, try_lock
from jobs.processors.target.sessions import Session
from jobs.targets import conninfo_for


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
    for row in Database.objects.filter(protected=True).select_related("user"):
        if _is(row, inside, name, system_identifier, folder):
            return _protected(name)
    return None


def _protected(name: str) -> str:
    return f'"{name}" is protected: take that off in its registration first, if it is what you want.'


def _is(row: Database, inside: Session, name: str, system_identifier: str, folder: Path) -> bool:
    facts: dict[str, Any] = row.facts if isinstance(row.facts, dict) else {}
    other = _conninfo(row)
    if other is None or other.dbname != name:
        return False
    if system_identifier and facts.get("system_identifier") not in (None, "", system_identifier):
        return False
    try:
        return meets(other, inside, folder)
    except ConnectionFailed:
        # It looks like it, and nobody can tell: a protected database is not worth the risk.
        return bool(system_identifier) and facts.get("system_identifier") == system_identifier


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
