"""The copies of a backup as its page shows them, each with what happens next; try one now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest
from django.utils import timezone

from jobs.admin.base import account
from jobs.admin.pages import REFUSALS
from jobs.copying import try_now
from jobs.models import BackupCopy, BackupJob
from jobs.models.storage import CopyState


@dataclass(frozen=True)
class Shown:
    """`status` gives the badge its colour, `word` is in it. `since`: how long it waits; `again`: the next try
    at copying or deleting."""

    copy: BackupCopy
    status: str
    word: str
    since: datetime | None = None
    again: datetime | None = None
    can_try: bool = False


def shown(backup: BackupJob) -> list[Shown]:
    return [shown_of(backup, copy) for copy in backup.copies.all()]


def try_one(request: HttpRequest, backup: BackupJob) -> None:
    """The copy that the form names."""
    copy = next((each for each in backup.copies.all() if str(each.pk) == request.POST.get("copy")), None)
    if copy is None:
        raise Http404("This backup has no such copy.")
    try:
        try_now(copy, by=account(request))
    except REFUSALS as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"The copy in {copy.storage.name} is made next.")


def shown_of(backup: BackupJob, copy: BackupCopy) -> Shown:
    again = copy.next_attempt_at
    if copy.state == CopyState.GOOD:
        return Shown(copy, "good", "good")
    if copy.state == CopyState.DELETING:
        tried = f", tried {_times(copy.attempts)}" if copy.error and copy.attempts else ""
        return Shown(copy, "deleting", f"deleting{tried}", again=again if copy.error else None)
    if copy.is_first and copy.state == CopyState.WRITING:
        return Shown(copy, "writing", "being written")
    if _is_held(copy.claim_id, again):
        return Shown(copy, "writing", "being copied")
    if backup.trashed_at is not None:
        return Shown(copy, "pending", "not made while the backup is in the trash")
    if copy.state == CopyState.FAILED:
        word = f"failed {_times(copy.attempts)}" if copy.attempts else "failed"
        return Shown(copy, "failed", word, again=again, can_try=True)
    return Shown(copy, "pending", "waiting", since=copy.created_at, again=_later(again), can_try=True)


def _is_held(claim_id: UUID | None, until: datetime | None) -> bool:
    return claim_id is not None and _later(until) is not None


def _later(moment: datetime | None) -> datetime | None:
    return moment if moment is not None and moment > timezone.now() else None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
