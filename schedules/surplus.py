"""What retention would do with what there is: reading only.

Candidates are the good copies in a storage of a schedule's completed backups, save those in the trash and
those given up already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from jobs import deleting
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.models.history import Status
from jobs.models.storage import CopyState
from jobs.storage.base import FOREVER
from schedules.models import Schedule
from schedules.policies import Policies
from schedules.retention import Candidate, Decision, Policy, decide

if TYPE_CHECKING:
    from schedules.plans import Target

WAITS_FOR_COPIES = timedelta(days=7)


@dataclass(frozen=True)
class Fate:
    """What becomes of a backup's copy in a storage. `reasons`: why it stays, "" when it goes."""

    backup: BackupJob
    storage: Storage
    reasons: str
    delete: bool

    @property
    def moment(self) -> datetime:
        """What retention goes by."""
        return self.backup.slot or self.backup.started_at or self.backup.created_at


def preview(schedule: Schedule, policy: Policy, targets: Sequence[Target] | None = None) -> list[Fate]:
    """What would stay and go now, the newest first in each storage. `targets`: None as they are saved.
    Raises `CronError` when the schedule's time zone is unknown."""
    policies = Policies.of(schedule, policy, targets)
    copies = candidates(schedule.id).select_related("backup", "storage")
    by_storage: dict[UUID, dict[UUID, BackupCopy]] = {}
    for copy in copies.defer("backup__log", "backup__manifest").order_by("storage__name", "storage_id"):
        by_storage.setdefault(copy.storage_id, {})[copy.backup_id] = copy
    return [
        fate
        for storage_id, found in by_storage.items()
        for fate in _fates(found, decision(schedule.id, storage_id, policies))
    ]


def good(schedule_id: UUID) -> QuerySet[BackupCopy]:
    backup = {"backup__schedule_id": schedule_id, "backup__status": Status.COMPLETED}
    return BackupCopy.objects.filter(state=CopyState.GOOD, backup__trashed_at=None, **backup)


def candidates(schedule_id: UUID) -> QuerySet[BackupCopy]:
    return good(schedule_id).filter(delete_after=None)


def storages_of(schedule_id: UUID) -> list[UUID]:
    """Where its good copies lie, also where none go any more."""
    return sorted(good(schedule_id).values_list("storage_id", flat=True).distinct())


def decision(
    schedule_id: UUID, storage_id: UUID, policies: Policies, copies: QuerySet[BackupCopy] | None = None
) -> Decision:
    """Over the candidates there, or over other `copies`."""
    rows = candidates(schedule_id) if copies is None else copies
    found = rows.filter(storage_id=storage_id).annotate(moment=deleting.moment("backup__"))
    columns = found.values_list("backup_id", "moment", "size", "backup__pinned")
    values = [Candidate(id_, moment, size or 0, pinned) for id_, moment, size, pinned in columns]
    return decide(values, policies.at(storage_id), timezone.now(), policies.zone)


def sources(backup_ids: Collection[UUID]) -> set[UUID]:
    """Those with only one good copy, from which another one is still to be made.

    A storage that is away gets what it missed, unless it stays away for longer than WAITS_FOR_COPIES.
    """
    unmade = Q(state__in=[CopyState.WRITING, CopyState.FAILED], next_attempt_at__isnull=False)
    waiting = BackupCopy.objects.filter(
        unmade, backup_id__in=backup_ids, created_at__gt=Now() - WAITS_FOR_COPIES
    )
    wanted = set(waiting.values_list("backup_id", flat=True))
    stored = BackupCopy.objects.filter(backup_id__in=wanted, state=CopyState.GOOD).values("backup_id")
    return wanted - {row["backup_id"] for row in stored.annotate(count=Count("id")).filter(count__gt=1)}


def _fates(copies: dict[UUID, BackupCopy], decided: Decision) -> Iterator[Fate]:
    wanted, making = deleting.wanted_by_restores(decided.delete), sources(decided.delete)
    for backup_id in [*decided.keep, *decided.delete]:
        copy = copies.get(backup_id)
        if copy is None:
            continue
        reasons = list(decided.keep.get(backup_id, []))
        if backup_id in wanted:
            reasons.append("a restore from it waits or runs")
        if backup_id in making:
            reasons.append("a copy of it is still to be made")
        if not reasons:
            reasons.extend(_not_yet(copy))
        yield Fate(copy.backup, copy.storage, ", ".join(reasons), delete=not reasons)


def _not_yet(copy: BackupCopy) -> Iterator[str]:
    now = timezone.now()
    if copy.locked_until is not None and copy.locked_until > now:
        held = copy.locked_until >= FOREVER
        yield "locked by a legal hold" if held else f"locked until {copy.locked_until:%Y-%m-%d %H:%M} UTC"
    elif copy.next_attempt_at is not None and copy.next_attempt_at > now:
        yield "its storage refuses to delete it, which is tried again later"
