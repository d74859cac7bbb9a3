"""Reading a payload, which is JSON of any origin."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from jobs.processors.base import JobFailed


def uuid_in(payload: dict[str, Any], key: str) -> UUID:
    """Raises `JobFailed` when there is none."""
    try:
        return UUID(str(payload[key]))
    except (KeyError, ValueError):
        raise JobFailed(f"The job's payload has no valid {key}.") from None
