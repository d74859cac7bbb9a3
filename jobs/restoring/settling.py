"""What jobs that ended without their processor have left at a target: cleared away, and told."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from jobs.crypto import CannotDecrypt
from jobs.models import MigrationJob, QueuedJob, RestoreJob
from jobs.models.history import Status
from jobs.pgtools.errors import PgToolsError
from jobs.processors.at_target import landing
from jobs.restoring.keeping import EACH_SECONDS, Row, holding, in_turns
from jobs.services import ServiceError
from jobs.waiting import within

TRIED_FOR = timedelta(days=7)

log = logging.getLogger(__name__)


def settle_unsettled() -> int:
    """Drop the temporary databases of jobs that are over, and say in their rows whether names had been
    changed; the number of jobs. An upkeep duty: a server that cannot be reached is asked again next time."""
    count = 0
    rows: list[Row] = []
    for model in (RestoreJob, MigrationJob):
        rows += model.objects.filter(completed_at__gt=Now() - TRIED_FOR).exclude(temporary_name=None)
    for row in in_turns(rows):
        try:
            _settle(row)
            count += 1
        except (ServiceError, PgToolsError, CannotDecrypt) as error:
            log.warning("whether %s was left behind is not known yet: %s", row.temporary_name, error)
    return count


def _settle(row: Row) -> None:
    with within(EACH_SECONDS, "Asking for it") as control, holding(row, control) as hold:
        landed = landing.already_landed(hold, row)
        landing.clear_leftovers(hold, row.pk)
        columns: dict[str, Any] = {"temporary_name": None}
        if row.status != Status.COMPLETED and row.landed_oid is not None:
            columns |= _told(row) if landed else landing.NOTHING_LANDED
            columns |= landing.settle(hold, row.mode, row.kept_name, row.kept_oid) if landed else {}
    with transaction.atomic():
        type(row)._default_manager.filter(pk=row.pk).update(**columns)
        if "error" in columns:
            QueuedJob.objects.filter(pk=row.pk).update(last_error=columns["error"])


def _told(row: Row) -> dict[str, Any]:
    kept = f' What it replaced is kept as "{row.kept_name}", and undo gives it back.' if row.kept_name else ""
    told = f'But names had been changed by then: "{row.target_name}" is the restored database.{kept}'
    return {"error": f"{row.error or ''} {told}".strip()}
