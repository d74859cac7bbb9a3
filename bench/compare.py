"""Ways that took turns, side by side."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.processes import MB
from bench.ways import Run


@dataclass(frozen=True)
class Line:
    """Medians over the rounds; seconds and MB."""

    way: str
    seconds: float
    fastest: float
    slowest: float
    from_enqueueing: float
    cpu: float
    tools_cpu: float
    stored: float


@dataclass(frozen=True)
class Ratio:
    """`ratio`: the median of the rounds' ratios, so that what slows a whole round down falls out; beside it
    the lowest and highest of them and the ratio of the medians. `extra`: seconds between the medians."""

    of: str
    to: str
    ratio: float
    lowest: float
    highest: float
    of_medians: float
    extra: float
    from_enqueueing: float
    aim: str


def rounds_of(ways: dict[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """The runs by their way; every second round in the opposite order."""
    found: dict[str, list[Run]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 == 0 else reversed(ways):
            os.sync()  # what one has left to be written is not the next one's burden
            found[way].append(ways[way]())
            print(f"round {number + 1}, {way}: {found[way][-1].seconds:.2f} s", file=sys.stderr)
    return found


def summary(way: str, runs: list[Run]) -> Line:
    times = [run.seconds for run in runs]
    return Line(
        way=way,
        seconds=round(median(times), 2),
        fastest=round(min(times), 2),
        slowest=round(max(times), 2),
        from_enqueueing=round(median(run.waited for run in runs), 2),
        cpu=round(median(run.cpu for run in runs), 2),
        tools_cpu=round(median(run.tools_cpu for run in runs), 2),
        stored=round(median(run.stored for run in runs) / MB, 1),
    )


def ratio(found: Mapping[str, list[Run]], ours: str, bare: str, aim: float) -> Ratio:
    pairs = list(zip(found[ours], found[bare], strict=True))
    took, needed = (median(run.seconds for run in found[way]) for way in (ours, bare))
    single = [mine.seconds / its.seconds for mine, its in pairs]
    return Ratio(
        of=ours,
        to=bare,
        ratio=round(median(single), 3),
        lowest=round(min(single), 3),
        highest=round(max(single), 3),
        of_medians=round(took / needed, 3),
        extra=round(took - needed, 2),
        from_enqueueing=round(median(mine.waited / its.seconds for mine, its in pairs), 3),
        aim=f"{aim} {'met' if median(single) <= aim else 'MISSED'}",
    )
