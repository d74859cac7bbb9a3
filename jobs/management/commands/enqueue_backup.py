"""manage.py enqueue_backup"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs import services
from jobs.management.cli import JobCommand, acting_user
from jobs.management.options import add_options, given
from jobs.pgtools.flags import FIELDS, DumpFlags

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
        add_options(parser, FIELDS, DumpFlags, TITLES)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        database = services.find_database(user, options["name"])
        storage = services.find_storage(database, options["storage"]) if options["storage"] else None
        flags = given(FIELDS, options)
        job_id = services.enqueue_backup(database, flags, by=user, storage=storage)
        self.announce(job_id, user, options, f"Backup of {database.name} queued: {job_id}")
