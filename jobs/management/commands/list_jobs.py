"""manage.py list_jobs"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs.management import listing, text
from jobs.management.cli import PgbrCommand, Refused, acting_user, add_json, add_user
from jobs.management.listing import JobView
from jobs.models.base import Queue
from jobs.models.history import Status

HEAD = ("ID", "QUEUE", "STATUS", "DATABASE", "SIZE", "CREATED", "TOOK")


class Command(PgbrCommand):
    help = "The newest jobs of all queues, waiting ones included."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--queue", choices=Queue.values)
        parser.add_argument("--status", choices=Status.values)
        parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many (50)")
        add_user(parser)
        add_json(parser)

    def handle(self, **options: Any) -> None:
        if options["limit"] < 1:
            raise Refused("--limit must be at least 1.")
        user = acting_user(options["user"])
        views = listing.newest(user, options["queue"], options["status"], options["limit"])
        if options["json"]:
            for view in views:
                self.emit(view.as_dict())
        elif views:
            self._table(views)
        else:
            self.say("No such jobs.")

    def _table(self, views: list[JobView]) -> None:
        head, *lines = text.columns(HEAD, [_cells(view) for view in views], right=[4, 6])
        self.say(head)
        for line, view in zip(lines, views, strict=True):
            self.say(line)
            if view.error:
                self.say(f"    {text.printable(view.error)}")


def _cells(view: JobView) -> list[str]:
    return [
        str(view.id),
        view.queue,
        view.status,
        text.printable(view.database) or "-",
        text.size(view.size),
        text.moment(view.created_at),
        text.between(view.started_at, view.completed_at),
    ]
