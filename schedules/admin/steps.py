"""What can be done with a schedule by one click, and deleting it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from jobs.admin.base import OwnedAdmin, account
from jobs.admin.database_actions import queued
from jobs.admin.deletion import Plan, confirmed
from jobs.models import BackupJob, Database
from jobs.services import ServiceError
from schedules import services
from schedules.admin.pages import DETAIL, LIST, REFUSALS, back, url
from schedules.cron import CronError
from schedules.models import Schedule


def switched(request: HttpRequest, enabled: bool, schedule: Schedule) -> None:
    """Raises `ServiceError`, also for an expression that cannot fire."""
    try:
        services.set_enabled(schedule, enabled, by=account(request))
    except CronError as error:
        raise ServiceError(f"It cannot run: {error}") from error


def run(request: HttpRequest, schedule: Schedule) -> UUID:
    return services.run_now(schedule, by=account(request))


def enable_view(request: HttpRequest, schedule: Schedule) -> HttpResponseBase:
    """Switches it on, or off with `enabled=no`: pressed twice it stays what the first press made it."""
    wanted = request.POST.get("enabled") != "no"
    try:
        switched(request, wanted, schedule)
    except REFUSALS as error:
        messages.error(request, f"{schedule.name}: {error}")
    else:
        messages.success(request, f"{schedule.name} is {'on' if wanted else 'off'}.")
    return back(request, url("change", schedule.pk))


def run_view(request: HttpRequest, schedule: Schedule) -> HttpResponseBase:
    try:
        job = run(request, schedule)
    except REFUSALS as error:
        messages.error(request, f"{schedule.name}: {error}")
    else:
        words = f"A backup of {schedule.database.name} is queued as {schedule.name} says."
        messages.success(request, queued(words, job))
    return back(request, url("change", schedule.pk))


def clone_view(request: HttpRequest, schedule: Schedule) -> HttpResponseBase:
    try:
        made = services.clone(schedule, free_name(schedule), by=account(request))
    except REFUSALS as error:
        messages.error(request, f"{schedule.name}: {error}")
        return back(request, url("change", schedule.pk))
    messages.success(request, f"{made.name} is the same as {schedule.name}, but off, and calls no monitor.")
    return redirect(url("edit", made.pk))


def free_name(schedule: Schedule) -> str:
    """ "nightly copy", "nightly copy 2": one that its owner has not used, of at most 100 characters."""
    taken = set(Schedule.objects.filter(user_id=schedule.user_id).values_list("name", flat=True))
    names = (
        f"{schedule.name[:85]} copy{f' {number}' if number > 1 else ''}"
        for number in range(1, len(taken) + 2)
    )
    return next(name for name in names if name not in taken)


def deletion(owner: OwnedAdmin[Any], request: HttpRequest, schedule: Schedule) -> HttpResponseBase:
    def destroy() -> HttpResponseBase:
        services.delete(schedule, by=account(request))
        messages.success(request, f"The schedule {schedule.name} is gone. Its backups stay.")
        return redirect(LIST)

    return confirmed(owner, request, _plan(schedule), destroy, back=reverse(DETAIL, args=[schedule.pk]))


def _plan(schedule: Schedule) -> Plan:
    backups = BackupJob.objects.filter(schedule_id=schedule.pk, status="completed").count()
    made = "1 backup stays" if backups == 1 else f"{backups} backups stay"
    watched = Database.objects.filter(watch=True, watch_schedule_id=schedule.pk).values_list(
        "name", flat=True
    )
    return Plan(
        title=f"Delete the schedule {schedule.name}",
        word=schedule.name,
        lost=[
            f"The schedule: no further backup of {schedule.database.name} is made by it.",
            "Its rules: what it made is pruned no longer, and takes room until somebody deletes it.",
            "Its lists of skipped slots and pings.",
            *(f"New databases that are found at {name} get no copy of it any more." for name in watched),
        ],
        kept=[f"Its {made}, with their history.", "The database itself is not touched."],
    )
