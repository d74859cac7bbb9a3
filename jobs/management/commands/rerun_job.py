"""manage.py rerun_job"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from jobs.management.cli import JobCommand, acting_user, add_consent, require_consent
from jobs.rerunning import Unconfirmed, rerun_job


class Command(JobCommand):
    help = "Queue a new job that does what an earlier one did."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", type=UUID)
        add_consent(parser)
        super().add_arguments(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        try:
            job_id = rerun_job(options["id"], by=user)
        except Unconfirmed as error:
            require_consent(self, options, error.what, error.name)
            job_id = rerun_job(options["id"], by=user, confirmed=True)
        self.announce(job_id, user, options, f"Job {options['id']} runs again as {job_id}")
