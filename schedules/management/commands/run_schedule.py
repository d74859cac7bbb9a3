"""manage.py run_schedule"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs.management.cli import JobCommand, acting_user
from schedules import services


class Command(JobCommand):
    help = "Queue a backup as a schedule has it, now and beside its planned runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the schedule")
        super().add_arguments(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        schedule = services.find(user, options["name"])
        job_id = services.run_now(schedule, by=user)
        self.announce(job_id, user, options, f"Schedule {schedule.name} runs now: {job_id}")
