"""Which policy holds in which storage of a schedule, and in whose days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from schedules.models import Schedule
from schedules.retention import Policy
from schedules.zones import zone_of

if TYPE_CHECKING:
    from schedules.plans import Target


@dataclass(frozen=True)
class Policies:
    """A storage with no rule of its own, or that is none of the schedule's any more, has the schedule's."""

    default: Policy
    own: Mapping[UUID, Policy] = field(default_factory=dict)
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))

    def at(self, storage_id: UUID) -> Policy:
        found = self.own.get(storage_id)
        return found if found is not None and found.is_set else self.default

    @classmethod
    def of(
        cls, schedule: Schedule, policy: Policy | None = None, targets: Sequence[Target] | None = None
    ) -> Policies:
        """As they are saved, or with another policy or other targets. Raises `CronError`."""
        if targets is None:
            own = {row.storage_id: Policy.of(row) for row in schedule.schedulestorage_set.all()}
        else:
            own = {target.storage.id: target.policy for target in targets}
        return cls(Policy.of(schedule) if policy is None else policy, own, zone_of(schedule.timezone))
