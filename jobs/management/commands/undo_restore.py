"""manage.py undo_restore"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from jobs import restoring, services
from jobs.management import listing, text
from jobs.management.cli import PgbrCommand, acting_user, add_consent, add_json, add_user, require_consent
from jobs.models import MigrationJob, RestoreJob

HEAD = ("JOB", "DATABASE", "KEPT AS", "UNTIL")


class Command(PgbrCommand):
    help = (
        "Undo a restore or migration that replaced a database: the old one gets its name back, what was "
        "restored is set aside. Without an id: list the databases that are kept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", type=UUID, nargs="?", help="of the restore or migration")
        parser.add_argument("--drop", action="store_true", help="drop the database that is kept, for good")
        add_consent(parser)
        add_user(parser)
        add_json(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        if options["id"] is None:
            self._list(user, as_json=options["json"])
            return
        row = _found(user, options["id"])
        if row.kept_name is None:
            raise services.ServiceError(f"No replaced database of job {row.id} is kept.")
        kept = text.printable(row.kept_name)
        if options["drop"]:
            require_consent(self, options, f"{kept} will be dropped for good", row.kept_name)
            restoring.drop_kept(row, by=user)
            said = f"{kept} is dropped."
        else:
            words = f"{row.target_name} will be what it was before, what was restored is set aside"
            require_consent(self, options, words, row.target_name)
            restoring.undo(row, by=user)
            said = text.printable(f"{row.target_name} is again what it was before.")
        if options["json"]:
            self.emit(listing.find(user, row.id).as_dict())
        else:
            self.say(said)

    def _list(self, user: User, *, as_json: bool) -> None:
        rows = restoring.kept(user)
        lines = [
            [str(row.id), row.target_name, row.kept_name or "", text.moment(row.kept_until)] for row in rows
        ]
        if as_json:
            for row in rows:
                self.emit(listing.find(user, row.id).as_dict() | {"kept_name": row.kept_name})
        elif lines:
            for line in text.columns(HEAD, [[text.printable(cell) for cell in line] for line in lines]):
                self.say(line)
        else:
            self.say("No replaced database is kept.")


def _found(user: User, job_id: UUID) -> RestoreJob | MigrationJob:
    row = (
        services.visible_to(user, RestoreJob.objects.filter(id=job_id)).first()
        or services.visible_to(user, MigrationJob.objects.filter(id=job_id)).first()
    )
    if row is None:
        raise services.NotFound(f"No restore or migration {job_id} is known.")
    return row
