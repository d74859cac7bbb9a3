"""Everything a run needs, checked one by one; what is missing comes with the way to mend it."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.doctor import instance, machine, reach
from jobs.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "examine"]


def examine() -> Iterator[Finding]:
    """All findings, as they are made. Without its database an instance can be examined in part only."""
    tools = machine.toolsets()
    yield from machine.examine(tools)
    yield from instance.configuration()
    own = list(instance.database())
    yield from own
    if any(finding.level is Level.FAILED for finding in own):
        return
    yield from instance.examine()
    yield from reach.storages()
    yield from reach.servers(tools)
