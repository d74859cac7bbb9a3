"""manage.py embedded_db"""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgbr import embedded


class Command(BaseCommand):
    help = (
        "The PostgreSQL that pgbr runs for itself when there is no DATABASE_URL: where it lies, start, stop."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "action",
            choices=["start", "stop", "status", "url"],
            help="start or stop it, say where it lies and whether it runs, or start it and print its URL "
            "(which holds the password)",
        )
        parser.add_argument("--json", action="store_true", help="print the state as one line of JSON")

    def handle(self, *, action: str, **options: Any) -> None:
        try:
            self._act(action, options["json"])
        except embedded.LocalServerError as error:
            raise CommandError(str(error)) from error

    def _act(self, action: str, as_json: bool) -> None:
        home = settings.PGBR_HOME
        if action in ("start", "url") and not settings.EMBEDDED_DATABASE:
            raise CommandError("DATABASE_URL is set, so pgbr uses that server and runs none of its own.")
        if action == "stop":
            embedded.stop(home)
        elif action != "status":
            url = embedded.ensure(home).url
            if action == "url":
                self.stdout.write(json.dumps({"url": url}) if as_json else url)
                return
        state = embedded.status(home)
        self.stdout.write(json.dumps(state.as_dict()) if as_json else state.in_words())
