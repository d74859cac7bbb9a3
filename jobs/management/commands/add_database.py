"""manage.py add_database"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from getpass import getpass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from jobs import databases
from jobs.management.cli import PgbrCommand, Refused, acting_user, add_json, add_user
from jobs.management.text import printable, size
from jobs.management.urls import read_url
from jobs.models import Database
from jobs.models.database import SslMode
from jobs.targets import conninfo_for

FILES = {
    "ca_file": ("ca_certificate", "PEM file with the certificate of the CA to trust"),
    "cert_file": ("client_certificate", "PEM file with the client certificate"),
    "key_file": ("client_key", "PEM file with the client certificate's key"),
}


class Command(PgbrCommand):
    help = "Register a database under a name, after logging in to it once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what pgbr calls it")
        parser.add_argument(
            "--url",
            metavar="URL|-",
            help="postgresql://user:password@host:port/database; - reads it from standard input. Left out, "
            "you are asked for it. An URL given here can be read by every user of this machine (ps).",
        )
        parser.add_argument("--sslmode", default="", choices=[mode for mode in SslMode.values if mode])
        for option, (_, words) in FILES.items():
            parser.add_argument(f"--{option.replace('_', '-')}", metavar="PATH", help=words)
        parser.add_argument("--no-check", action="store_true", help="do not log in now")
        add_user(parser)
        add_json(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        tls = {field: _read(options[option]) for option, (field, _) in FILES.items() if options[option]}
        if options["sslmode"]:
            tls["sslmode"] = options["sslmode"]
        url = self._url(options["url"])
        # One that cannot be logged in to is not kept.
        with transaction.atomic():
            database = databases.register(user, options["name"], url, by=user, **tls)
            facts = None if options["no_check"] else databases.check(database)
        self._report(database, facts, as_json=options["json"])

    def _url(self, given: str | None) -> str:
        if given:
            return read_url(self, given, "--url")
        if sys.stdin.isatty():
            return getpass("URL (not shown): ").strip()
        raise Refused("No URL was given: write it to standard input and say --url -")

    def _report(self, database: Database, facts: Mapping[str, Any] | None, *, as_json: bool) -> None:
        if as_json:
            self.emit({"id": str(database.id), "name": database.name, "facts": facts})
            return
        self.say(printable(f"{database.name}: {conninfo_for(database).masked()}"))
        for line in _in_words(facts) if facts else ["  not checked: no login was tried"]:
            self.say(printable_line(line))


def printable_line(line: str) -> str:
    return line[: len(line) - len(line.lstrip())] + printable(line)


def _in_words(facts: Mapping[str, Any]) -> list[str]:
    role = "a replica" if facts["in_recovery"] else "a primary"
    lines = [f"  PostgreSQL {facts['version']}, {role}, {size(facts['size_bytes'])}"]
    missing = facts.get("missing_privileges") or []
    if not missing:
        return [*lines, "  a full backup can read everything"]
    return [*lines, "  a full backup would lack:", *(f"    {what}" for what in missing)]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}") from error
