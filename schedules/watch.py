"""Watched servers: new databases are registered and get a copy of a schedule; those that have vanished are
reported, never deleted."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs import discovery, ending
from jobs.crypto import CannotDecrypt
from jobs.discovery import Answer, Found, Registrar, free_name
from jobs.models import Database
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import PgToolsError
from jobs.queue.connections import is_outage
from jobs.queue.rows import storable
from jobs.services import ServiceError
from jobs.targets import conninfo_for
from schedules import services
from schedules.cron import CronError
from schedules.models import Schedule

# With what a duty's pace and the look itself take, every server is looked at within the hour.
EACH = timedelta(minutes=50)
RETRY = timedelta(minutes=10)  # after a worker that died while it looked
LONGEST_SECONDS = 240.0
MOST_TOLD = 200  # names of a list that people read
TROUBLE = (ServiceError, PgToolsError, CannotDecrypt, CronError, OSError)

log = logging.getLogger(__name__)


@dataclass
class Seen:
    """What a look found, as `Database.watched` keeps it.

    `found`: databases of the server. `new`: what they are called here. `vanished`: those registered here
    that the server does not have (name here, name there). `left`: names there that somebody removed here by
    hand, and that are not registered again. `known`: names there that are or were registered.
    """

    found: int = 0
    new: list[str] = field(default_factory=list)
    vanished: list[list[str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


def choices(owner: User) -> list[tuple[str, str]]:
    """The schedules whose copies new databases may get: (id, name)."""
    found = Schedule.objects.filter(user_id=owner.pk).order_by("name").values_list("id", "name")
    return [(str(schedule), name) for schedule, name in found]


def watch_due() -> int:
    """Look at the watched servers that nobody has looked at for about an hour; how many. An upkeep duty, safe
    to run in many workers at once; holds no connection while a server is asked."""
    until, count = time.monotonic() + LONGEST_SECONDS, 0
    while time.monotonic() < until and not ending.has_begun():
        database = _lease()
        if database is None:
            break
        try:
            _look(database)
        except Exception as error:
            if is_outage(error):
                raise
            log.exception("watching the server of %s failed", database.name)
        count += 1
    return count


@transaction.atomic
def _lease() -> Database | None:
    """One that is due, which for a while is nobody else's."""
    due = Q(watched_at=None) | Q(watched_at__lt=Now() - EACH)
    rows = Database.objects.filter(due, watch=True).order_by(F("watched_at").asc(nulls_first=True))
    found = rows.select_for_update(skip_locked=True, of=("self",)).select_related("user").first()
    if found is not None:
        Database.objects.filter(id=found.id).update(watched_at=Now() - EACH + RETRY)
    return found


def _look(database: Database) -> None:
    try:
        conninfo = conninfo_for(database)
        connection.close()
        answer = discovery.ask(conninfo)
    except TROUBLE as error:
        _keep(database, replace(_last(database), new=[], problems=[str(error)]))
        return
    current = Database.objects.select_related("user").filter(id=database.id, watch=True).first()
    if current is not None and current.sealed_url == database.sealed_url:
        _keep(current, _compare(current, conninfo, answer))


def _compare(database: Database, conninfo: Conninfo, answer: Answer) -> Seen:
    """Register what is new, and tell what has vanished."""
    found, own = discovery.found(database, conninfo, answer), discovery.own_name(answer)
    known = discovery.registered(database.user, conninfo)
    before = {name for name in _last(database).known if isinstance(name, str)}
    free = [one for one in found if one.free and one.name != own and _watched(database, one.name)]
    seen = Seen(found=len(found), left=[one.name for one in free if one.name in before][:MOST_TOLD])
    _register(database, [one for one in free if one.name not in before][: discovery.MOST_AT_ONCE], seen)
    names = {one.name for one in answer.listed}
    gone = sorted(name for name in known.keys() - names if name != own and _watched(database, name))
    seen.vanished = [[known[name], name] for name in gone][:MOST_TOLD]
    seen.known = sorted((before | known.keys() | set(seen.known)) & names)
    return seen


@transaction.atomic
def _register(database: Database, new: Sequence[Found], seen: Seen) -> None:
    """Each with its schedule, or not at all: the next look tries again."""
    if not new:
        return
    registrar = Registrar(database, by=database.user)
    for one in new:
        try:
            with transaction.atomic():
                row = registrar.add(one.name, watch=True)
                if row is not None:
                    _copy_schedule(database, row, seen)
                    seen.new.append(row.name)
                    seen.known.append(one.name)
        except TROUBLE as error:
            seen.problems.append(f"{one.name} could not be registered: {error}")


def _copy_schedule(database: Database, row: Database, seen: Seen) -> None:
    if database.watch_schedule_id is None:
        return
    chosen = Schedule.objects.filter(id=database.watch_schedule_id, user_id=database.user_id).first()
    if chosen is None:
        seen.problems.append(f"{row.name} has no schedule: the one to copy is gone. Choose another one.")
        return
    taken = set(Schedule.objects.filter(user_id=database.user_id).values_list("name", flat=True))
    plan = replace(
        services.plan_to_copy(chosen), name=free_name(f"{chosen.name} {row.name}", taken), enabled=True
    )
    services.create(row, plan, by=database.user)


def _watched(database: Database, name: str) -> bool:
    """Globs of the shell, case and all; no include means every one."""
    include, exclude = _globs(database.watch_include), _globs(database.watch_exclude)
    wanted = not include or any(fnmatchcase(name, glob) for glob in include)
    return wanted and not any(fnmatchcase(name, glob) for glob in exclude)


def _globs(value: Any) -> list[str]:
    return [glob for glob in value if isinstance(glob, str)] if isinstance(value, list) else []


def _last(database: Database) -> Seen:
    """What the last look found; nothing where there was none, or somebody wrote something else there."""
    value = database.watched if isinstance(database.watched, dict) else {}
    kept = {name: value[name] for name, of in vars(Seen()).items() if isinstance(value.get(name), type(of))}
    return Seen(**kept)


def _keep(database: Database, seen: Seen) -> None:
    seen.problems = [storable(words)[:1000] for words in seen.problems[:MOST_TOLD]]
    for words in seen.problems:
        log.warning("watching the server of %s: %s", database.name, words)
    Database.objects.filter(id=database.id).update(watched=vars(seen), watched_at=Now())
