"""Saying that jobs are still being worked on."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from jobs.queue import sql
from jobs.queue.rows import rows


def beat(claims: Collection[UUID]) -> dict[UUID, bool]:
    """Stamp all these claims in one statement. Returns the ones still held, each with whether its job is
    to be cancelled; a claim that is missing from the answer is lost."""
    if not claims:
        return {}
    stamped = rows(sql.HEARTBEAT, {"claims": list(claims)})
    return {row["claim_id"]: row["cancelled"] for row in stamped}
