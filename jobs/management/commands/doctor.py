"""manage.py doctor"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs.doctor import Finding, Level, examine
from jobs.management.cli import PgbrCommand, add_json
from jobs.management.text import printable

MARKS = {Level.OK: "ok", Level.WARNING: "note", Level.FAILED: "FAILED"}


class Command(PgbrCommand):
    help = "Check everything a run needs, and say how to mend what is missing. Exit code 1 if anything is."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def handle(self, **options: Any) -> None:
        counted = dict.fromkeys(Level, 0)
        for finding in examine():
            counted[finding.level] += 1
            if options["json"]:
                self.emit(finding.as_dict())
            else:
                self._show(finding)
        if not options["json"]:
            self.say(self._summary(counted))
        if counted[Level.FAILED]:
            raise SystemExit(1)

    def _show(self, finding: Finding) -> None:
        styles = {
            Level.OK: self.style.SUCCESS,
            Level.WARNING: self.style.WARNING,
            Level.FAILED: self.style.ERROR,
        }
        mark = styles[finding.level](f"{MARKS[finding.level]:<7}")
        self.say(f"{mark}{finding.subject}: {printable(finding.message)}")
        if finding.remedy:
            self.say(f"       -> {printable(finding.remedy)}")

    def _summary(self, counted: dict[Level, int]) -> str:
        if not counted[Level.FAILED]:
            return "Everything a run needs is there."
        return f"{counted[Level.FAILED]} to mend; each line above says how."
