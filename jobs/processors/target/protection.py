"""Which databases nothing may be restored into: those marked as protected, and pgbr's own."""

from __future__ import annotations

from typing import Any

from django.db import connection

from jobs.crypto import CannotDecrypt
from jobs.models import Database
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import InvalidConninfo
from jobs.targets import conninfo_for

OWN = """
SELECT (SELECT system_identifier::text FROM pg_catalog.pg_control_system()), pg_catalog.current_database()
"""


def why_protected(conninfo: Conninfo, name: str, system_identifier: str) -> str | None:
    """The reason why the database called `name` at `conninfo`'s server must stay as it is; None: there is
    none.

    Known by its server's system identifier, however its address is spelt, or else by its address.
    """
    if system_identifier and _own() == (system_identifier, name):
        return f'"{name}" is the database that pgbr itself runs on.'
    for row in Database.objects.filter(protected=True).select_related("user"):
        if _is(row, conninfo, name, system_identifier):
            return f'"{name}" is protected: take that off in its registration first, if it is what you want.'
    return None


def _is(row: Database, conninfo: Conninfo, name: str, system_identifier: str) -> bool:
    facts: dict[str, Any] = row.facts if isinstance(row.facts, dict) else {}
    if system_identifier and (facts.get("system_identifier"), facts.get("dbname")) == (
        system_identifier,
        name,
    ):
        return True
    try:
        other = conninfo_for(row)
    except (CannotDecrypt, InvalidConninfo):
        return False
    return (other.host_label, other.dbname) == (conninfo.host_label, name)


def _own() -> tuple[str, str] | None:
    with connection.cursor() as cursor:
        cursor.execute(OWN)
        row = cursor.fetchone()
    return (str(row[0]), str(row[1])) if row else None
