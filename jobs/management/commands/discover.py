"""manage.py discover"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from jobs import discovery
from jobs.discovery import Found
from jobs.management import text
from jobs.management.cli import PgbrCommand, Refused, acting_user, add_json, add_user
from jobs.models import Database
from jobs.services import find_database
from jobs.targets import conninfo_for

HEAD = ("DATABASE", "SIZE", "HERE")


class Command(PgbrCommand):
    help = "List the databases of a registered connection's server, and register those that are chosen."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="a registered database: its server and its login are used")
        chosen = parser.add_mutually_exclusive_group()
        chosen.add_argument(
            "--register", nargs="+", metavar="DATABASE", help="register these, by their names on the server"
        )
        chosen.add_argument("--all", action="store_true", help="register all that are not registered yet")
        add_user(parser)
        add_json(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        database = find_database(user, options["name"])
        found = discovery.discover(database, by=user)
        if not (options["register"] or options["all"]):
            self._list(found, as_json=options["json"])
            return
        wanted = _wanted(found, options)
        made = discovery.register(database, wanted, by=user) if wanted else []
        self._report(made, as_json=options["json"])

    def _list(self, found: Sequence[Found], *, as_json: bool) -> None:
        if as_json:
            for one in found:
                self.emit(vars(one))
            return
        for line in text.columns(HEAD, [_cells(one) for one in found], right=[1]):
            self.say(line)

    def _report(self, made: Sequence[Database], *, as_json: bool) -> None:
        for row in made:
            name = conninfo_for(row).dbname
            if as_json:
                self.emit({"id": str(row.id), "name": row.name, "dbname": name})
            else:
                self.say(text.printable(f"{name} is registered as {row.name}"))
        if not made and not as_json:
            self.say("Nothing to register: all of them are registered already, or cannot be used.")


def _wanted(found: Sequence[Found], options: Mapping[str, Any]) -> list[str]:
    """Raises `Refused` for a name that the server does not have, or that the login cannot use."""
    if options["all"]:
        return [one.name for one in found if one.free]
    there = {one.name: one for one in found}
    for name in options["register"]:
        if name not in there:
            raise Refused(f'The server has no database "{name}". It has: {", ".join(there) or "none"}.')
        if there[name].reason:
            raise Refused(f'"{name}" cannot be registered: {there[name].reason}')
    return list(options["register"])


def _cells(one: Found) -> list[str]:
    here = f"registered as {one.registered_as}" if one.registered_as else one.reason or "-"
    return [text.printable(one.name), text.size(one.size), text.printable(here)]
