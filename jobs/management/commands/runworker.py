"""manage.py runworker"""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from jobs.models.base import Queue
from jobs.worker.supervisor import worker


class Command(BaseCommand):
    help = "Take jobs from the queues and run them, until SIGTERM or SIGINT."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queue",
            action="append",
            choices=Queue.values,
            help="only this queue; may be given more than once",
        )
        parser.add_argument(
            "--concurrency",
            type=int,
            default=settings.WORKER_CONCURRENCY,
            help="jobs at once in EACH queue (default: WORKER_CONCURRENCY, %(default)s)",
        )
        parser.add_argument("--drain", action="store_true", help="work off what is due, then exit 0")

    def handle(self, **options: Any) -> None:
        if options["concurrency"] < 1:
            self.stderr.write("--concurrency must be at least 1.")
            sys.exit(2)
        queues = list(dict.fromkeys(options["queue"] or Queue.values))
        sys.exit(worker(queues, options["concurrency"], drain=options["drain"]).run())
