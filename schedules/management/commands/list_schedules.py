"""manage.py list_schedules"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs.management.cli import PgbrCommand, acting_user, add_json, add_user
from jobs.management.text import columns, printable
from jobs.services import visible_to
from schedules.health import Health
from schedules.management import listing
from schedules.models import Schedule


class Command(PgbrCommand):
    help = "All schedules: when they run, when they last succeeded, and what is wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        add_user(parser)
        add_json(parser)

    def handle(self, **options: Any) -> None:
        found = listing.shown(visible_to(acting_user(options["user"]), Schedule.objects.all()))
        if options["json"]:
            for schedule, health in found:
                self.emit(listing.as_dict(schedule, health))
        elif found:
            self._table(found)
        else:
            self.say("No schedules yet: `add_schedule` makes one.")

    def _table(self, found: list[tuple[Schedule, Health]]) -> None:
        head, *lines = columns(listing.HEAD, [listing.cells(*each) for each in found])
        self.say(head)
        for line, (schedule, _) in zip(lines, found, strict=True):
            self.say(line)
            for trouble in filter(None, [schedule.broken, schedule.retention_error]):
                self.say(f"    {printable(trouble)}")
