"""Who copies: one worker at a time holds a row, by a claim that is never used twice and runs out by itself.

A thread renews it, since the store may take long over one call (the end of a large upload, a sync to a slow
disk). Neither that thread nor the bytes hold a database connection.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.db.utils import Error

from jobs import ending
from jobs.models import BackupCopy, BackupJob
from jobs.models.storage import CopyState

LEASE_SECONDS = 120.0
RENEW_SECONDS = 20.0
UNFINISHED = (CopyState.WRITING, CopyState.FAILED)

# An array, so that LIMIT is a limit (see jobs.queue.sql). Those that failed least come first, so that
# one which always fails holds up no other; among these the newest backup, which is needed most.
TAKE = """
UPDATE backup_copies
SET claim_id = gen_random_uuid(), next_attempt_at = statement_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = ANY(ARRAY(
    SELECT copy.id
    FROM backup_copies AS copy
    JOIN backup_jobs AS backup ON backup.id = copy.backup_id
    WHERE copy.state IN ('writing', 'failed')
      AND copy.next_attempt_at <= statement_timestamp()
      AND backup.status = 'completed'
      AND backup.trashed_at IS NULL
    ORDER BY copy.attempts, backup.completed_at DESC, copy.id
    FOR UPDATE OF copy SKIP LOCKED
    LIMIT 1
))
RETURNING id, claim_id
"""

log = logging.getLogger(__name__)


class Lost(Exception):
    """The copy was deleted, is being deleted, lies in the trash, or is another worker's by now."""


@dataclass
class Lease:
    copy_id: UUID
    claim_id: UUID
    _lost: threading.Event = field(default_factory=threading.Event)

    @property
    def row(self) -> QuerySet[BackupCopy]:
        """The row for as long as it is ours to finish; every write about the copy goes through it."""
        untrashed = BackupJob.objects.filter(id=OuterRef("backup_id"), trashed_at=None)
        return self.claimed.filter(Exists(untrashed), state__in=UNFINISHED)

    @property
    def claimed(self) -> QuerySet[BackupCopy]:
        return BackupCopy.objects.filter(id=self.copy_id, claim_id=self.claim_id)

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def stopped(self) -> bool:
        """To be polled by whoever waits for a store."""
        return self.lost or ending.has_begun()

    def write(self, **values: Any) -> None:
        """Raises `Lost` when the row is not ours any more."""
        with briefly():
            if not self.row.update(**values):
                self._lost.set()
        if self.lost:
            raise Lost

    def renew(self) -> None:
        """Raises `Lost`."""
        self.write(next_attempt_at=Now() + timedelta(seconds=LEASE_SECONDS))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renewed until the block ends."""
        over = threading.Event()
        thread = threading.Thread(target=self._keep, args=[over], name="pgbr-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _keep(self, over: threading.Event) -> None:
        while not over.wait(RENEW_SECONDS):
            try:
                self.renew()
            except Lost:
                return
            except Error as error:  # the claim is checked once the database is back
                log.warning("could not renew the lease of a copy: %s", str(error).strip())


def take() -> Lease | None:
    """The copy that is most urgent, in one auto-committed statement."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"seconds": LEASE_SECONDS})
        found = cursor.fetchone()
    return Lease(*found) if found else None


@contextmanager
def briefly() -> Iterator[None]:
    """The connection goes back at once: the next bytes may be long in coming."""
    try:
        yield
    finally:
        if not connection.in_atomic_block:
            connection.close()
