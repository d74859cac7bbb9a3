"""manage.py enqueue_backup"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandParser

from jobs import services
from jobs.management.cli import JobCommand, acting_user
from jobs.models import Database, Storage
from jobs.pgtools.flags import FIELDS, Field
from jobs.stores import usable_by

TITLES = {
    "common": "most used",
    "what": "what is backed up",
    "how": "how it is written",
    "advanced": "rarely needed",
}


class Command(JobCommand):
    help = "Queue a backup of a registered database. Options are those of pg_dump, and are checked here."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the database, as it was registered")
        parser.add_argument("--storage", metavar="NAME", help="where it goes (default: the database's own)")
        super().add_arguments(parser)
        groups = {name: parser.add_argument_group(title) for name, title in TITLES.items()}
        for field in FIELDS:
            groups[field.group].add_argument(f"--{field.option}", **_argument(field))

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        database = services.find_database(user, options["name"])
        storage = _storage(database, options["storage"]) if options["storage"] else None
        flags = {field.name: options[field.name] for field in FIELDS if field.name in options}
        job_id = services.enqueue_backup(database, flags, by=user, storage=storage)
        self.announce(job_id, user, options, f"Backup of {database.name} queued: {job_id}")


def _argument(field: Field) -> dict[str, Any]:
    """How argparse takes the option. One not given is left out, so that defaults live in one place."""
    shared: dict[str, Any] = {
        "dest": field.name,
        "default": argparse.SUPPRESS,
        "help": (field.help or field.label).replace("%", "%%"),
    }
    if field.kind == "switch":
        return shared | {"action": "store_true"}
    if field.kind == "either":
        return shared | {"action": argparse.BooleanOptionalAction}
    if field.kind == "number":
        return shared | {"type": int, "metavar": "N"}
    if field.kind == "patterns":
        return shared | {"action": "append", "metavar": "PATTERN"}
    if field.kind == "sections":
        return shared | {"action": "append", "choices": field.choices}
    if field.kind == "choice":
        return shared | {"choices": field.choices}
    return shared | {"metavar": "CODEC[:LEVEL]" if field.kind == "codec" else field.option.upper()}


def _storage(database: Database, name: str) -> Storage:
    usable = usable_by(database.user).order_by("user_id")
    found = usable.filter(name=name).first()
    if found is None:
        known = ", ".join(usable.values_list("name", flat=True)[:10]) or "none"
        raise services.NotFound(f"No storage is called {name!r}. There is: {known}.")
    return found
