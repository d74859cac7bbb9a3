"""The demo's two databases on the embedded server, in the hands of a role without privileges.

Only what that role owns is ever dropped; whatever else lies on the server is left alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from pgbr import embedded
from pgbr.embedded import Connection

ROLE = "pgbr_demo"
SOURCE, COPY = "pgbr_demo", "pgbr_demo_copy"
SCRIPT = Path(__file__).with_name("sample.sql")
COMPLETE = "The sample of `make demo`, version 1"
LOCK = 0x70676272  # "pgbr"

Session = psycopg.Connection[tuple[object, ...]]


class DemoFailed(Exception):
    """The demo did not reach its end; the message says why."""


@dataclass(frozen=True)
class Server:
    """The embedded server with the demo's role, whose password is new for each run."""

    superuser: Connection
    password: str

    def of_role(self, database: str) -> Connection:
        return Connection(self.superuser.host, self.superuser.port, ROLE, self.password, database)


@contextmanager
def prepared(home: Path) -> Iterator[Server]:
    """The server with the sample database complete, and a role that may make the copy. One demo at a time."""
    server = Server(embedded.superuser(home), secrets.token_urlsafe(24))
    with connect(server.superuser) as session:
        if _value(session, "SELECT pg_try_advisory_lock(%s)", LOCK) is not True:
            raise DemoFailed("Another demo is running on this instance: wait for its end.")
        _make_role(session, server.password)
        if _value(session, COMMENT_OF, SOURCE) != COMPLETE:
            _make_database(session, SOURCE)
            _fill(server)
            session.execute(_about("COMMENT ON DATABASE {} IS {}", SOURCE, sql.Literal(COMPLETE)))
        _refuse_stranger(session, COPY)
        yield server


def is_there(server: Server, name: str) -> bool:
    with connect(server.superuser) as session:
        return _value(session, OWNER_OF, name) is not None


def close_to_public(server: Server, name: str) -> None:
    """Only its owner's role may connect."""
    with connect(server.superuser) as session:
        session.execute(_about("REVOKE ALL ON DATABASE {} FROM PUBLIC", name))


COMMENT_OF = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"
OWNER_OF = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s"


def connect(connection: Connection) -> Session:
    return psycopg.connect(
        host=connection.host,
        port=connection.port,
        user=connection.user,
        password=connection.password,
        dbname=connection.dbname,
        autocommit=True,
        application_name="pgbr demo",
    )


def _make_role(session: Session, password: str) -> None:
    encrypted = session.pgconn.encrypt_password(password.encode(), ROLE.encode(), b"scram-sha-256").decode()
    if _value(session, "SELECT 1 FROM pg_roles WHERE rolname = %s", ROLE) is None:
        session.execute(_about("CREATE ROLE {}", ROLE))
    rights = "ALTER ROLE {} LOGIN NOSUPERUSER CREATEDB NOCREATEROLE PASSWORD {}"
    session.execute(_about(rights, ROLE, sql.Literal(encrypted)))


def _refuse_stranger(session: Session, name: str) -> None:
    owner = _value(session, OWNER_OF, name)
    if owner not in (None, ROLE):
        raise DemoFailed(
            f"The database {name} of the embedded server belongs to {owner}: it was not touched."
        )


def _make_database(session: Session, name: str) -> None:
    _refuse_stranger(session, name)
    session.execute(_about("DROP DATABASE IF EXISTS {} WITH (FORCE)", name))
    session.execute(_about("CREATE DATABASE {} OWNER {} TEMPLATE template0", name, sql.Identifier(ROLE)))
    session.execute(_about("REVOKE ALL ON DATABASE {} FROM PUBLIC", name))


def _fill(server: Server) -> None:
    with connect(server.of_role(SOURCE)) as session:
        session.execute(SCRIPT.read_bytes())


def _about(statement: str, name: str, *others: sql.Composable) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(name), *others)


def _value(session: Session, query: str, parameter: object) -> object:
    row = session.execute(query.encode(), [parameter]).fetchone()
    return row[0] if row else None
