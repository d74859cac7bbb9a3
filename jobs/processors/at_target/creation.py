"""Making a database like another one: encoding, locale, settings, owner and privileges."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from jobs.processors.at_target.sessions import Session
from jobs.processors.base import JobFailed

BUILTIN_SINCE, PROVIDER_SINCE = 17, 15
OF_DATABASE = """
SELECT pg_catalog.pg_get_userbyid(datdba), datconnlimit, datacl IS NOT NULL
FROM pg_catalog.pg_database WHERE datname = %s
"""
PRIVILEGES = """
SELECT CASE a.grantee WHEN 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(a.grantee) END, a.privilege_type,
       a.is_grantable
FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a WHERE d.datname = %s
"""
OWNS = "SELECT pg_catalog.pg_has_role(datdba, 'USAGE') FROM pg_catalog.pg_database WHERE datname = %s"
ON_DATABASE = frozenset({"CONNECT", "CREATE", "TEMPORARY"})


@dataclass(frozen=True)
class Properties:
    """What a new database is made with; "" means as the server has it."""

    encoding: str = ""
    locale_provider: str = ""  # libc, icu or builtin
    collate: str = ""
    ctype: str = ""
    locale: str = ""  # of icu and builtin

    @classmethod
    def from_manifest(cls, values: Mapping[str, Any]) -> Properties:
        """`values`: the "database" of a manifest."""
        known = {name: values.get(name) for name in cls.__dataclass_fields__}
        return cls(**{name: value if isinstance(value, str) else "" for name, value in known.items()})


def create(session: Session, name: str, wanted: Properties, owner: str) -> list[str]:
    """An empty database, the login's own where it may not be `owner`'s (""): what was refused, for the
    history. Raises `JobFailed` with the server's reason.

    The owner comes first: only their rights let them own what is restored into the schema public.
    """
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0{}").format(
        sql.Identifier(name), _clauses(wanted, session.info.server_version // 10000)
    )
    try:
        session.execute(statement)
    except psycopg.errors.OperationalError:
        raise
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
        raise JobFailed(
            f"A database like the source (encoding {wanted.encoding or 'as the server has it'}, locale "
            f"{wanted.locale or wanted.collate or 'as the server has it'}) could not be created at "
            f"{session.info.host}: {reason}. Create one by hand as it should be and restore into that."
        ) from error
    refusal = _give_away(session, name, owner) if owner else ""
    return [refusal] if refusal else []


def _give_away(session: Session, name: str, owner: str) -> str:
    """The reason where it cannot be, or where it could be neither renamed nor dropped afterwards."""
    order = sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(owner))
    owns = False
    try:
        with session.transaction():
            session.execute(order)
            row = session.execute(OWNS, [name]).fetchone()
            owns = bool(row and row[0])
            if not owns:
                raise psycopg.Rollback
    except psycopg.errors.OperationalError:
        raise
    except psycopg.Error as error:
        return _refused(order, session, error)
    return "" if owns else f'The database is not "{owner}"\'s, whose rights the login does not inherit.'


def owner_of(session: Session, name: str) -> str:
    """ "" where there is no such database."""
    row = session.execute(OF_DATABASE, [name]).fetchone()
    return str(row[0]) if row else ""


def drop(session: Session, name: str) -> None:
    """With whoever is still in it. Nothing happens where it does not exist."""
    try:
        _drop(session, name)
    except psycopg.errors.WrongObjectType:  # it is a template
        session.execute(sql.SQL("ALTER DATABASE {} IS_TEMPLATE false").format(sql.Identifier(name)))
        _drop(session, name)


def _drop(session: Session, name: str) -> None:
    """FORCE ends everybody, but takes a superuser to end an autovacuum worker; without FORCE, that alone is
    ended."""
    statement = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name))
    forced = sql.SQL("{} WITH (FORCE)").format(statement)
    try:
        session.execute(forced)
    except psycopg.errors.InsufficientPrivilege:
        with suppress(psycopg.errors.ObjectInUse):
            session.execute(statement)
            return
        session.execute(forced)


def apply_settings(session: Session, name: str, settings: Mapping[str, Any]) -> list[str]:
    """ALTER DATABASE … SET as `pg_db_role_setting` has them, lists and all; what was refused, for the
    history.

    A value of a list, such as search_path's, is text that is quoted already: the server takes it over from
    this session, where it is set first.
    """
    refused = []
    for setting, value in settings.items():
        try:
            with session.transaction():
                session.execute("SELECT pg_catalog.set_config(%s, %s, true)", [setting, str(value)])
                statement = sql.SQL("ALTER DATABASE {} SET {} FROM CURRENT")
                session.execute(statement.format(sql.Identifier(name), _setting(setting)))
        except psycopg.errors.OperationalError:
            raise
        except psycopg.Error as error:
            reason = str(error).strip().partition("\n")[0]
            refused.append(f"The database's setting {setting} = {value} could not be kept: {reason}")
    return refused


def take_over(session: Session, old: str, new: str) -> list[str]:
    """Give `new` the connection limit and privileges of `old`; what was refused, for the history."""
    row = session.execute(OF_DATABASE, [old]).fetchone()
    if row is None:
        raise JobFailed(f'The database "{old}" was dropped meanwhile.')
    _, limit, has_privileges = row
    target = sql.Identifier(new)
    orders = [
        sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}").format(target, sql.Literal(limit)),
        *(_privileges(session, old, target) if has_privileges else []),
    ]
    return [refusal for order in orders if (refusal := attempt(session, order))]


def _privileges(session: Session, old: str, target: sql.Identifier) -> list[sql.Composed]:
    orders = [sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(target)]
    for grantee, privilege, grantable in session.execute(PRIVILEGES, [old]).fetchall():
        if privilege in ON_DATABASE:
            role = sql.SQL("PUBLIC") if grantee is None else sql.Identifier(grantee)
            option = sql.SQL(" WITH GRANT OPTION" if grantable else "")
            grant = sql.SQL("GRANT {} ON DATABASE {} TO {}{}")
            orders.append(grant.format(sql.SQL(privilege), target, role, option))
    return orders


def attempt(session: Session, order: sql.Composed) -> str:
    """The server's reason if it refuses, "" if it obeys."""
    try:
        session.execute(order)
    except psycopg.errors.OperationalError:
        raise
    except psycopg.Error as error:
        return _refused(order, session, error)
    return ""


def _refused(order: sql.Composed, session: Session, error: psycopg.Error) -> str:
    return f"{order.as_string(session)}: {str(error).strip().partition(chr(10))[0]}"


def _setting(name: str) -> sql.Composable:
    """Custom settings have a dot between two names."""
    return sql.SQL(".").join(sql.Identifier(part) for part in name.split("."))


def _clauses(wanted: Properties, major: int) -> sql.Composable:
    given = []
    if wanted.encoding:
        given.append(("ENCODING", wanted.encoding))
    provider = wanted.locale_provider or "libc"
    if provider != "libc" and major < (BUILTIN_SINCE if provider == "builtin" else PROVIDER_SINCE):
        raise JobFailed(
            f"The source's locale is of the provider {provider}, which PostgreSQL {major} does not have. "
            "Create a database by hand and restore into that."
        )
    if provider != "libc":
        given.append(("LOCALE_PROVIDER", provider))
        given.append(("ICU_LOCALE" if provider == "icu" else "BUILTIN_LOCALE", wanted.locale))
    if wanted.collate:
        given.append(("LC_COLLATE", wanted.collate))
    if wanted.ctype:
        given.append(("LC_CTYPE", wanted.ctype))
    parts = [sql.SQL(" {} {}").format(sql.SQL(name), sql.Literal(value)) for name, value in given]
    return sql.SQL("").join(parts)
