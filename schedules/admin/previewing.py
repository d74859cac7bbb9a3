"""What a policy that is not saved yet would delete."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings

from schedules import prune
from schedules.admin.parts import Parts
from schedules.cron import CronError
from schedules.models import Schedule
from schedules.plans import targets_of
from schedules.prune import Fate
from schedules.retention import Policy


@dataclass(frozen=True)
class Preview:
    """`now`: also deleted by what is saved, with no way back. `later`: only by this policy. `failure`: why
    nothing can be told."""

    now: list[Fate] = field(default_factory=list)
    later: list[Fate] = field(default_factory=list)
    kept: list[Fate] = field(default_factory=list)
    failure: str = ""
    zone: str = "UTC"  # of the times, as the reasons have it

    @property
    def trash_days(self) -> int:
        return int(settings.TRASH_DAYS)


def preview_of(schedule: Schedule | None, parts: Parts) -> Preview:
    """By the rules, storages and zone of a form. Of a new schedule: nothing, for it has no backups."""
    if schedule is None:
        return Preview()
    try:
        typed = copy(schedule)
        typed.timezone = parts.timing.zone_or(schedule.timezone)
        fates = prune.preview(typed, parts.keeping.policy(), parts.rows.targets())
        saved = prune.preview(schedule, Policy.of(schedule), targets_of(schedule))
    except CronError as error:
        return Preview(failure=f"The schedule as it is saved: {error}")
    gone = {_key(fate) for fate in saved if fate.delete}
    deleted = [fate for fate in fates if fate.delete]
    return Preview(
        now=[fate for fate in deleted if _key(fate) in gone],
        later=[fate for fate in deleted if _key(fate) not in gone],
        kept=[fate for fate in fates if not fate.delete],
        zone=typed.timezone,
    )


def _key(fate: Fate) -> tuple[UUID, UUID]:
    return fate.backup.pk, fate.storage.pk
