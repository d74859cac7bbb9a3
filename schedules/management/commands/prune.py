"""manage.py prune"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs.management import text
from jobs.management.cli import PgbrCommand, acting_user, add_json, add_user
from jobs.services import visible_to
from schedules import prune, services
from schedules.errors import CronError
from schedules.models import Schedule
from schedules.prune import Fate
from schedules.retention import Policy

HEAD = ("SCHEDULE", "STORAGE", "BACKUP", "OF", "SIZE", "FATE")


class Command(PgbrCommand):
    help = "Delete now what the retention of schedules gives up. Workers do the same after each backup."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="only say what would go, and what stays why"
        )
        parser.add_argument("--schedule", metavar="NAME", help="of this one alone (all)")
        add_user(parser)
        add_json(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        if options["schedule"]:
            chosen = [services.find(user, options["schedule"])]
        else:
            chosen = list(visible_to(user, Schedule.objects.order_by("name")))
        act = self._look if options["dry_run"] else self._prune
        done = [act(schedule, as_json=options["json"]) for schedule in chosen]
        if not chosen and not options["json"]:
            self.say("There are no schedules.")
        if not all(done):
            raise SystemExit(1)

    def _look(self, schedule: Schedule, *, as_json: bool) -> bool:
        try:
            fates = prune.preview(schedule, Policy.of(schedule))
        except CronError as error:
            return self._failed(schedule, str(error))
        failed = len(prune.old_failed(schedule))
        if as_json:
            for fate in fates:
                self.emit(_as_dict(schedule, fate))
            self.emit({"schedule": schedule.name, "failed_runs": failed, "delete": True})
            return True
        name = text.printable(schedule.name)
        head, *lines = text.columns(HEAD, [_cells(name, fate) for fate in fates], right=[4])
        for line in [head, *lines] if lines else [f"{name}: no good backups."]:
            self.say(line)
        if failed:
            self.say(f"{name}: {failed} failed runs would go from the history.")
        return True

    def _prune(self, schedule: Schedule, *, as_json: bool) -> bool:
        try:
            gone = prune.prune(schedule)
        except CronError as error:
            return self._failed(schedule, str(error))
        schedule.refresh_from_db(fields=["retention_error"])
        if as_json:
            self.emit({"schedule": schedule.name, "deleted": gone, "error": schedule.retention_error})
        else:
            self.say(f"{text.printable(schedule.name)}: {gone} deleted.")
            if schedule.retention_error:
                self.remark(text.printable(schedule.retention_error))
        return schedule.retention_error is None

    def _failed(self, schedule: Schedule, error: str) -> bool:
        self.remark(text.printable(f"{schedule.name}: {error}"))
        return False


def _as_dict(schedule: Schedule, fate: Fate) -> dict[str, Any]:
    return {
        "schedule": schedule.name,
        "storage": fate.storage.name,
        "backup": str(fate.backup.id),
        "of": fate.moment.isoformat(),
        "size": fate.backup.size,
        "delete": fate.delete,
        "reasons": fate.reasons,
    }


def _cells(name: str, fate: Fate) -> list[str]:
    return [
        name,
        text.printable(fate.storage.name),
        str(fate.backup.id),
        text.moment(fate.moment),
        text.size(fate.backup.size),
        "deleted" if fate.delete else f"kept: {text.printable(fate.reasons)}",
    ]
