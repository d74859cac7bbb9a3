"""Reading a payload, which is JSON of any origin."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from jobs.pgtools.restore_options import MODES
from jobs.processors.at_target import names
from jobs.processors.base import JobFailed


def uuid_in(payload: dict[str, Any], key: str) -> UUID:
    """Raises `JobFailed` when there is none."""
    try:
        return UUID(str(payload[key]))
    except (KeyError, ValueError):
        raise JobFailed(f"The job's payload has no valid {key}.") from None


def aim_in(payload: dict[str, Any]) -> tuple[str, str]:
    """Mode and name of the target. Raises `JobFailed`."""
    mode, name = payload.get("mode"), payload.get("target_name")
    if mode not in MODES or not isinstance(name, str):
        raise JobFailed(f"The job's payload has no valid mode ({', '.join(MODES)}) and target_name.")
    if problem := names.problem_with(name):
        raise JobFailed(f"The job's payload has no valid target_name. {problem}")
    return mode, name
