"""The databases of a registered connection's server: which there are, and registering them by its login."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.utils import Error

from jobs.crypto import CannotDecrypt
from jobs.databases import session
from jobs.models import Database, MigrationJob, RestoreJob
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.databases import Listed, databases
from jobs.pgtools.errors import InvalidConninfo
from jobs.pgtools.server import system_identifier
from jobs.pgtools.url import split
from jobs.queue.rows import rows
from jobs.secrets import seal
from jobs.services import NotFound, ServiceError, record, visible_to
from jobs.targets import conninfo_for
from jobs.waiting import looks

LOCK_KEY = 0x70676272_00000000  # "pgbr", and the account
MOST_AT_ONCE = 500
LONGEST_NAME = 100
COPIED = (
    "sslmode", "ca_certificate", "client_certificate", "sealed_client_key", "protected", "storage_id",
    "max_duration", "bandwidth_limit", "max_parallel",
)  # fmt: skip
KEPT = "What a restore or migration replaced: it is kept until that is undone, or the database dropped."
BEING_MADE = "A restore or migration is making it."
OWN = "SELECT current_database() AS name, (SELECT system_identifier::text FROM pg_control_system()) AS server"


@dataclass(frozen=True)
class Found:
    """A database that one could connect to. `size` in bytes, None where the login may not ask.
    `registered_as`: what it is called here. `reason` why the login cannot use it, "" if it can."""

    name: str
    size: int | None
    registered_as: str | None
    reason: str

    @property
    def free(self) -> bool:
        return self.registered_as is None and not self.reason


@dataclass(frozen=True)
class Answer:
    """What a server said. `identifier`: which one it is, "" where it did not tell."""

    listed: Sequence[Listed]
    identifier: str


def discover(database: Database, *, by: User) -> list[Found]:
    """Log in and look, with the time limits of a connection test; nothing is changed.

    Raises `PgToolsError`, `ServiceError` or `CannotDecrypt` with a message to act on.
    """
    _require(database, by)
    conninfo = conninfo_for(database)
    with looks.turn(by):
        answer = ask(conninfo)
    return found(database, conninfo, answer)


def ask(conninfo: Conninfo) -> Answer:
    """Needs no connection to our own database. Raises `PgToolsError`."""
    with session(conninfo) as connection:
        return Answer(databases(connection), system_identifier(connection))


def found(database: Database, conninfo: Conninfo, answer: Answer) -> list[Found]:
    """What of an answer can be connected to."""
    known = registered(database.user, conninfo)
    listed = [one for one in answer.listed if not one.closed]
    ours = _of_restores([one.name for one in listed])
    return [
        Found(one.name, one.size, known.get(one.name), ours.get(one.name) or _reason(one, conninfo))
        for one in listed
    ]


def registered(owner: User, conninfo: Conninfo) -> dict[str, str]:
    """The databases of this server that the account has here: name there -> name here."""
    known: dict[str, str] = {}
    for row in Database.objects.filter(user_id=owner.pk).select_related("user").order_by("created_at"):
        try:
            other = conninfo_for(row)
        except (CannotDecrypt, InvalidConninfo):
            continue
        if other.server == conninfo.server:
            known.setdefault(other.dbname, row.name)
    return known


def own_name(answer: Answer) -> str | None:
    """What pgbr's own database is called on this server, if it is there. Where servers do not tell who they
    are, it might be."""
    own = _own()
    elsewhere = answer.identifier and own["server"] and answer.identifier != own["server"]
    return None if elsewhere else str(own["name"])


@transaction.atomic
def register(database: Database, names: Iterable[str], *, by: User) -> list[Database]:
    """New rows for these databases of the server, with the connection's login, TLS material, storage and
    limits. What is registered already is left out.

    Raises `ServiceError`, `InvalidConninfo` for a name that no URL can hold, `CannotDecrypt`.
    """
    _require(database, by)
    wanted = list(dict.fromkeys(names))
    if not 0 < len(wanted) <= MOST_AT_ONCE:
        raise ServiceError(f"Choose 1 to {MOST_AT_ONCE} databases to register at once, not {len(wanted)}.")
    registrar = Registrar(database, by)
    made = [registrar.add(name) for name in wanted]
    return [row for row in made if row is not None]


class Registrar:
    """Makes rows for databases of a connection's server, in a transaction of the caller's, until whose end
    nobody else does for this account: another look at the same server may be about to make the same."""

    def __init__(self, database: Database, by: User) -> None:
        owner = database.user_id
        rows("SELECT pg_advisory_xact_lock(%(key)s)", {"key": LOCK_KEY + owner})
        self._database, self._by = database, by
        self._conninfo = conninfo_for(database)
        self._known = registered(database.user, self._conninfo)
        self._taken = set(Database.objects.filter(user_id=owner).values_list("name", flat=True))

    def add(self, name: str, **detail: Any) -> Database | None:
        """None: it is registered already. Raises `ServiceError`, `InvalidConninfo`."""
        if name in self._known:
            return None
        of = self._database
        row = Database(
            user=of.user,
            name=free_name(f"{of.name}-{name}", self._taken),
            sealed_url=seal(_url(self._conninfo, name)),
            **{column: getattr(of, column) for column in COPIED},
        )
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            raise ServiceError(f"A database called {row.name!r} has just been registered.") from error
        self._taken.add(row.name)
        record(self._by, "add", row, discovered_through=of.name, **detail)
        return row


def free_name(wished: str, taken: set[str]) -> str:
    """Printable, at most 100 characters, and none of those that are taken."""
    shown = "".join(letter if letter.isprintable() else "_" for letter in wished).strip()
    name, number = shown[:LONGEST_NAME].strip(), 1
    while name in taken:
        number += 1
        ending = f"-{number}"
        name = shown[: LONGEST_NAME - len(ending)].strip() + ending
    return name


def _url(conninfo: Conninfo, name: str) -> str:
    url = conninfo.replace_database(name).url()
    if split(url, trusted=conninfo.trusted)["dbname"] != name:
        raise InvalidConninfo(f'A URL cannot name the database "{name}".')
    return url


def _reason(one: Listed, conninfo: Conninfo) -> str:
    if not one.readable:
        return "Its name is no UTF-8, which a URL cannot say."
    try:
        _url(conninfo, one.name)
    except InvalidConninfo as error:
        return str(error)
    return "" if one.may_connect else f'The login "{conninfo.user}" may not connect to it.'


def _of_restores(names: list[str]) -> dict[str, str]:
    """Those that a restore or migration of pgbr's makes or keeps, and drops again: name -> why it is left.
    Their names hold an id or a time, so that no other server's are meant."""
    found: dict[str, str] = {}
    for model in (RestoreJob, MigrationJob):
        kept = model.objects.filter(kept_name__in=names).values_list("kept_name", flat=True)
        made = model.objects.filter(temporary_name__in=names).values_list("temporary_name", flat=True)
        found |= {str(name): KEPT for name in kept} | {str(name): BEING_MADE for name in made}
    return found


def _require(database: Database, by: User) -> None:
    if not visible_to(by, Database.objects.filter(id=database.id)).exists():
        raise NotFound(f"No database is called {database.name!r}.")


def _own() -> dict[str, Any]:
    try:
        with transaction.atomic():
            return rows(OWN, {})[0]
    except Error:
        return rows("SELECT current_database() AS name, '' AS server", {})[0]
