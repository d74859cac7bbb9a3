"""Registering databases and looking at them: what the admin and the commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import psycopg
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from jobs import scratch
from jobs.models import Database
from jobs.pgtools import server
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.privileges import missing_privileges
from jobs.processors import source
from jobs.secrets import seal
from jobs.services import ServiceError, record
from jobs.targets import conninfo_for, parse, remember_facts
from jobs.waiting import LOGIN_SECONDS, looks

LONGEST_SECONDS = 60.0


def register(owner: User, name: str, url: str, *, by: User, **tls: str) -> Database:
    """A new row for `owner`. `tls`: sslmode, ca_certificate, client_certificate, client_key.

    Raises `InvalidConninfo` for a URL or TLS material that cannot be used, `ServiceError` for the name or
    where `by` may not act for `owner`.
    """
    if by.pk != owner.pk and not by.is_superuser:
        raise ServiceError("Only a superuser registers databases for somebody else.")
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise ServiceError("A database needs a name of 1 to 100 printable characters.")
    parse(url, owner=owner, **tls)
    database = Database(user=owner, name=name.strip())
    set_connection(database, url, **tls)
    try:
        with transaction.atomic():
            database.save()
            record(by, "add", database)
    except IntegrityError as error:
        raise ServiceError(f"A database called {name!r} is registered already.") from error
    return database


def set_connection(database: Database, url: str, **tls: str) -> None:
    """Put a URL and TLS material, checked before by `jobs.targets.parse`, into the row; not saved yet.

    The port of a URL without one is 5432, as libpq has it.
    """
    database.sealed_url = seal(url.strip())
    database.sslmode = tls.get("sslmode", "")
    database.ca_certificate = tls.get("ca_certificate", "").strip()
    database.client_certificate = tls.get("client_certificate", "").strip()
    database.sealed_client_key = seal(tls.get("client_key", "").strip())


@contextmanager
def session(conninfo: Conninfo) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A logged-in session on a user's server that is not behind a transaction pooler. Somebody waits for it,
    and few can at once: it is cut off after `LONGEST_SECONDS`.

    Raises `PgToolsError`.
    """
    with (
        scratch.folder("session") as folder,
        source.session(conninfo, folder, "pgbr", seconds=LONGEST_SECONDS, patience=LOGIN_SECONDS) as found,
    ):
        yield found


def check(database: Database) -> dict[str, Any]:
    """Log in and look: `ServerFacts` as JSON, with `missing_privileges` (what a full dump would lack).

    Kept in the row. Raises `PgToolsError`, `ServiceError` or `CannotDecrypt` with a message to act on.
    """
    conninfo = conninfo_for(database)
    with looks.turn(database.user), session(conninfo) as connection:
        facts = asdict(server.inspect(connection))
        facts["missing_privileges"] = missing_privileges(connection, DumpFlags())
    facts["host"], facts["url"] = conninfo.host_label, conninfo.masked()
    server.check_keepable(facts)
    remember_facts(database, facts)
    return facts
