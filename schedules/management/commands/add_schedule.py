"""manage.py add_schedule"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.core.management.base import CommandParser

from jobs.management.cli import PgbrCommand, Refused, acting_user, add_json, add_user
from jobs.management.options import add_options, given
from jobs.management.text import moment, printable
from jobs.models import Database
from jobs.pgtools.flags import FIELDS, DumpFlags
from jobs.services import find_database, find_storage
from schedules import cron, services
from schedules.management import listing
from schedules.models import Schedule
from schedules.retention import Policy
from schedules.services import Plan, Target

TITLES = {
    "common": "the backup, most used",
    "what": "what is backed up",
    "how": "how it is written",
    "advanced": "rarely needed",
}
KEEP = {
    "last": "keep the newest N backups",
    "days": "keep those of the last N days",
    "hourly": "keep the newest of each of the last N hours that have one",
    "daily": "the same by days, in the schedule's zone",
    "weekly": "by weeks (from Monday)",
    "monthly": "by months",
    "yearly": "by years",
    "bytes": "of all these no more than fit into so many bytes; the newest stays in any case",
}
PINGS = ("start", "success", "failure")


class Command(PgbrCommand):
    help = "Back up a registered database again and again. Without a rule of what to keep, all backups stay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what pgbr calls the schedule")
        parser.add_argument("--database", required=True, metavar="DB", help="as it was registered")
        parser.add_argument(
            "--cron", required=True, metavar="EXPR", help='five fields, such as "30 2 * * *", or @daily'
        )
        parser.add_argument("--timezone", default="UTC", metavar="ZONE", help="such as Europe/Berlin (UTC)")
        parser.add_argument(
            "--storage",
            action="append",
            default=[],
            metavar="NAME",
            help="where it goes (default: as the database has it); given again: where it is copied to",
        )
        parser.add_argument("--skip-missed", action="store_true", help="no run to catch up after downtime")
        parser.add_argument("--skip-overlap", action="store_true", help="none while the previous one goes on")
        parser.add_argument("--disabled", action="store_true", help="do not switch it on yet")
        _add_keeping(parser)
        for outcome in PINGS:
            parser.add_argument(f"--ping-{outcome}", default="", metavar="URL", help=f"called at {outcome}")
        add_user(parser)
        add_json(parser)
        add_options(parser, FIELDS, DumpFlags, TITLES)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        database = find_database(user, options["database"])
        try:
            schedule = services.create(database, _plan(database, options), by=user)
        except cron.CronError as error:
            raise Refused(str(error)) from error
        for warning in cron.warnings(schedule.cron_expression):
            self.remark(f"warning: {warning}")
        self._report(schedule, as_json=options["json"])

    def _report(self, schedule: Schedule, *, as_json: bool) -> None:
        ((row, found),) = listing.shown(Schedule.objects.filter(id=schedule.id))
        if as_json:
            self.emit(listing.as_dict(row, found))
            return
        self.say(printable(f"{row.name}: backs up {row.database.name}. {listing.when(row)}"))
        self.say(f"  next run: {moment(found.next_run_at)}" if row.enabled else "  disabled")


def _add_keeping(parser: CommandParser) -> None:
    group = parser.add_argument_group("what is kept (what any of these keeps, stays)")
    for rule, words in KEEP.items():
        group.add_argument(f"--keep-{rule}", type=_rule, metavar="N", help=words)
    group.add_argument(
        "--keep-failed", type=int, metavar="N", help="failed runs in the history (default: all)"
    )


def _rule(text: str) -> int:
    """Whoever says 0 means something, but not the same as everybody: that all stays, or that nothing does."""
    if (number := int(text)) < 1:
        raise ArgumentTypeError("must be 1 or more; left out, there is no such rule")
    return number


def _plan(database: Database, options: Mapping[str, Any]) -> Plan:
    return Plan(
        name=options["name"],
        cron_expression=options["cron"],
        timezone=options["timezone"],
        flags=given(FIELDS, options),
        enabled=not options["disabled"],
        skip_missed=options["skip_missed"],
        overlap="skip" if options["skip_overlap"] else "allow",
        policy=Policy(**{rule.name: options[rule.name] for rule in fields(Policy)}),
        keep_failed=options["keep_failed"],
        storages=[Target(find_storage(database, name)) for name in options["storage"]],
        **{f"ping_{outcome}_url": options[f"ping_{outcome}"] for outcome in PINGS},
    )
