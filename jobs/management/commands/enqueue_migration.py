"""manage.py enqueue_migration"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from jobs import restoring, services
from jobs.management.aim import AimedCommand
from jobs.management.cli import acting_user
from jobs.management.options import add_options, given
from jobs.management.urls import read_url
from jobs.models import Database
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.options import BY_NAME
from jobs.restoring import MigrationOrder
from jobs.targets import conninfo_for, parse

# Of the dump, which nobody stores: what is in it and how it is read, not how it is written.
DUMP_OPTIONS = tuple(
    BY_NAME[name]
    for name in (
        "jobs", "data_only", "schema_only", "schemas", "exclude_schemas", "tables", "exclude_tables",
        "exclude_table_data", "large_objects", "lock_wait_timeout", "role", "no_publications",
        "no_subscriptions", "no_unlogged_table_data", "enable_row_security", "quote_all_identifiers",
    )
)  # fmt: skip
TITLES = {
    "common": "dumping, most used",
    "what": "what is dumped",
    "how": "how it is dumped",
    "advanced": "dumping, rarely needed",
}
PREFIX = "dump-"
SIDE_HELP = "a registered database, or postgresql://…; - reads the URL from standard input, a line each"


class Command(AimedCommand):
    help = "Queue a migration: a dump of one database that goes straight into another, stored nowhere."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="source", required=True, metavar="NAME|URL|-", help=SIDE_HELP)
        parser.add_argument("--to", dest="target", required=True, metavar="NAME|URL|-", help=SIDE_HELP)
        parser.add_argument(
            "--staged",
            action="store_true",
            help="over the worker's disk, in parallel jobs on both sides: the source is read for less time",
        )
        super().add_arguments(parser)
        add_options(parser, DUMP_OPTIONS, DumpFlags, TITLES, PREFIX)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        source = self._side(user, options["source"], "--from")
        target = self._side(user, options["target"], "--to")
        order = MigrationOrder(
            source=source,
            target=target,
            mode=self.mode(options),
            target_name=options["as_name"] or _name_there(user, target),
            dump_flags=given(DUMP_OPTIONS, options, PREFIX),
            restore_flags=self.flags(options),
            staged=options["staged"],
        )
        order = self.aimed(order, partial(restoring.check_migration, by=user), options)
        job_id = restoring.enqueue_migration(order, by=user)
        words = f"Migration into {order.target_name} ({order.mode}) queued: {job_id}"
        self.announce(job_id, user, options, words)

    def _side(self, user: User, wanted: str, option: str) -> Database | str:
        if wanted == "-" or "://" in wanted:
            return read_url(self, wanted, option)
        return services.find_database(user, wanted)


def _name_there(user: User, target: Database | str) -> str:
    found = parse(target, owner=user) if isinstance(target, str) else conninfo_for(target)
    return found.dbname
