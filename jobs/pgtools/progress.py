"""How far a dump is, from what `pg_dump --verbose` says and the bytes that came out. Reads no clock.

pg_dump names a table when it begins with it; dumping in parallel it also says when one is finished. Tables
are weighted by size, and within a table the bytes put out so far are compared with what its size let expect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

LARGE_OBJECTS = "large objects"
# Helpers of a parallel dump write "pg_dump:", the space and the rest separately, so they get mixed up.
PREFIX = r"(?:pg_dump:| )*"
STARTED = re.compile(PREFIX + r'dumping contents of table "(.+)"$')
STARTED_LARGE_OBJECTS = re.compile(PREFIX + r"saving large objects")
FINISHED = re.compile(PREFIX + r"finished item \d+ TABLE DATA (.+)$")
FINISHED_LARGE_OBJECTS = re.compile(PREFIX + r"finished item \d+ BLOBS? ")
STEP = re.compile(PREFIX + r"((?:reading|finding|flagging|saving) .+)$")
# An empty table costs a little too; without this a database of empty tables would have no progress.
LEAST_WEIGHT = 8192
# Output per byte of table until the dump itself has shown better.
FIRST_RATIO = {"none": 0.8, "gzip": 0.3, "lz4": 0.45, "zstd": 0.25}
ALMOST = 0.99


@dataclass(frozen=True)
class Started:
    """pg_dump began with a table ("schema.table") or with the large objects."""

    table: str


@dataclass(frozen=True)
class Finished:
    """A table dumped in parallel is done. pg_dump names it without its schema here."""

    name: str


@dataclass(frozen=True)
class Step:
    """What pg_dump does before rows come, in its own words, e.g. "reading indexes"."""

    text: str


def parse(line: str) -> Started | Finished | Step | None:
    """What a line of `pg_dump --verbose` says about progress."""
    line = line.rstrip("\r\n")
    if match := STARTED.match(line):
        return Started(match[1])
    if STARTED_LARGE_OBJECTS.match(line):
        return Started(LARGE_OBJECTS)
    if match := FINISHED.match(line):
        return Finished(match[1])
    if FINISHED_LARGE_OBJECTS.match(line):
        return Finished(LARGE_OBJECTS)
    if match := STEP.match(line):
        return Step(match[1])
    return None


class DumpProgress:
    """Adds up the lines and bytes of one dump.

    `weights` comes from `tables.tables`, `codec` from `DumpFlags.compression`, `jobs` from the flags. Not
    thread-safe: the thread that reads stderr and the one that counts bytes need a lock of their caller's.
    """

    def __init__(self, weights: Mapping[str, int], codec: str = "none", jobs: int = 1) -> None:
        self._weights = {name: max(size, LEAST_WEIGHT) for name, size in weights.items()}
        self._total = sum(self._weights.values())
        self._ratio = FIRST_RATIO.get(codec.partition(":")[0], 1.0)
        self._parallel = jobs > 1
        self._running: dict[str, int] = {}
        self._done: set[str] = set()
        self._done_weight = 0
        self._highest = 0.0
        self.bytes = 0
        self.step = ""

    @property
    def current(self) -> tuple[str, ...]:
        """The tables being dumped, in the order they began."""
        return tuple(self._running)

    @property
    def tables_done(self) -> int:
        return len(self._done - {LARGE_OBJECTS})

    @property
    def tables_total(self) -> int:
        return len(self._weights.keys() - {LARGE_OBJECTS})

    def feed(self, line: str) -> bool:
        """Take in a line of stderr; true when it changed something worth showing."""
        event = parse(line)
        if isinstance(event, Started):
            self._start(event.table)
        elif isinstance(event, Finished):
            self._finish_named(event.name)
        elif isinstance(event, Step):
            self.step = event.text
        return event is not None

    def advance(self, total_bytes: int) -> None:
        """The dump has put out `total_bytes` so far."""
        self.bytes = max(self.bytes, total_bytes)

    def share(self) -> float:
        """From 0 to 0.99: never falls, and full only when the caller knows that all is done."""
        if self._total:
            running = sum(self._weights.get(table, 0) for table in self._running)
            since = self.bytes - min(self._running.values(), default=self.bytes)
            reached = self._done_weight + running * _fraction(since, running * self._expected())
            self._highest = max(self._highest, min(reached / self._total, ALMOST))
        return self._highest

    def _expected(self) -> float:
        """Bytes put out per byte of table, as this dump has shown where enough of it is done."""
        begun = min(self._running.values(), default=self.bytes)
        if self._done_weight > self._total / 50 and begun > 0:
            return begun / self._done_weight
        return self._ratio

    def _start(self, table: str) -> None:
        if not self._parallel:
            for running in list(self._running):
                if running != table:
                    self._finish(running)
        if table not in self._done:
            self._running.setdefault(table, self.bytes)
        self.step = f"dumping {table}"

    def _finish_named(self, name: str) -> None:
        for table in self._running:
            if table == name or table.endswith(f".{name}"):
                self._finish(table)
                return

    def _finish(self, table: str) -> None:
        del self._running[table]
        self._done.add(table)
        self._done_weight += self._weights.get(table, 0)


def _fraction(so_far: float, expected: float) -> float:
    """How much of what runs is done: in proportion up to 0.8, then ever closer to 1 without reaching it."""
    if expected <= 0 or so_far <= 0:
        return 0.0
    ratio = so_far / expected
    return ratio if ratio <= 0.8 else 1 - 0.2 * math.exp((0.8 - ratio) / 0.2)


def rate(bytes_before: int, bytes_now: int, seconds: float) -> float:
    """Bytes per second between two looks; 0 when no time has passed."""
    return max(bytes_now - bytes_before, 0) / seconds if seconds > 0 else 0.0


def seconds_left(share: float, elapsed: float) -> float | None:
    """At the speed so far; None while too little is done to tell."""
    if share < 0.02 or elapsed < 1:
        return None
    return elapsed * (1 - share) / share
