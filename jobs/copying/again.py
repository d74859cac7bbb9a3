"""For those who do not want to wait for the next try."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.copying.lease import UNFINISHED
from jobs.models import BackupCopy, BackupJob
from jobs.services import NotFound, ServiceError, record, visible_to


@transaction.atomic
def try_now(copy: BackupCopy, *, by: User) -> None:
    """Make a copy that waits or has failed the next one to be tried. Raises `NotFound`, `ServiceError`."""
    backup = visible_to(by, BackupJob.objects.filter(copies=copy.id)).first()
    if backup is None:
        raise NotFound(f"There is no copy {copy.id}.")
    idle = Q(claim_id=None) | Q(next_attempt_at=None) | Q(next_attempt_at__lte=Now())
    rows = BackupCopy.objects.filter(idle, id=copy.id, state__in=UNFINISHED)
    if not rows.update(claim_id=None, next_attempt_at=Now()):
        raise ServiceError(f"The copy in {copy.storage.name!r} is being copied, or good, or being deleted.")
    record(by, "copy", backup, storage=copy.storage.name)
