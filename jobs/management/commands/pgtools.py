"""manage.py pgtools"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from jobs.doctor import machine
from jobs.management import text
from jobs.management.cli import PgbrCommand, add_json
from jobs.pgtools import binaries
from jobs.pgtools.toolset import Toolset


class Command(PgbrCommand):
    help = "The client tools (pg_dump, pg_restore, psql) that pgbr finds on this machine."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add_json(actions.add_parser("list", help="what is there, in the order of preference"))
        install = actions.add_parser("install", help="download the tools of one major into PGBR_HOME/pgtools")
        install.add_argument("major", type=int, help=f"one of {', '.join(map(str, binaries.INSTALLABLE))}")
        add_json(install)

    def handle(self, **options: Any) -> None:
        if options["action"] == "install":
            toolsets = [binaries.install(options["major"], settings.PGTOOLS_FOLDER)]
        else:
            toolsets = machine.toolsets()
        if options["json"]:
            for toolset in toolsets:
                self.emit(_as_dict(toolset))
            return
        if not toolsets:
            self.say("None. Run `python manage.py pgtools install MAJOR`, or install postgresql-client.")
            return
        lines = [[tools.label, ", ".join(sorted(tools.compressors)), str(tools.bin)] for tools in toolsets]
        for line in text.columns(("VERSION", "COMPRESSION", "FOLDER"), lines):
            self.say(line)


def _as_dict(tools: Toolset) -> dict[str, Any]:
    return {
        "major": tools.major,
        "version": tools.label,
        "folder": str(tools.bin),
        "compression": sorted(tools.compressors),
    }
