"""manage.py cancel_job"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from jobs import services
from jobs.management import listing
from jobs.management.cli import JobCommand, acting_user


class Command(JobCommand):
    help = "Cancel a waiting or running job. With --wait: until its processes have ended."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", type=UUID)
        super().add_arguments(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        outcome = services.cancel_job(options["id"], by=user)
        view = self.wait_for(options["id"], user, options) if options["wait"] else None
        view = view or listing.find(user, options["id"])
        if options["json"]:
            self.emit(view.as_dict())
        elif outcome == "cancelled" or view.ended:
            self.say(f"Job {view.id} ended: {view.status}.")
        else:
            self.say(f"Job {view.id} was told to stop; its worker ends it within seconds.")
        if view.ended and view.status != "cancelled":
            raise SystemExit(1)
