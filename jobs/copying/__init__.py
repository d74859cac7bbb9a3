"""Copies of a backup beside its first one: made afterwards by the upkeep, whole or not at all.

A row of backup_copies with `next_attempt_at` is work to do: `writing` was never there, `failed` was tried or
found damaged. What a schedule wants is planned in `schedules.copies`. A copy never fails its backup.
"""

from jobs.copying.again import try_now
from jobs.copying.duty import copy_due
from jobs.copying.lonely import lonely

__all__ = ["copy_due", "lonely", "try_now"]
