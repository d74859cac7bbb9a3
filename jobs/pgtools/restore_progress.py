"""How far a restore is, from what `pg_restore --verbose` says and the bytes that went in. Reads no clock.

Definitions come first and are quick, then the rows, then indexes and constraints, which can take as long
again. Each of the three has its share of the whole; how far it is in each is told by entries of the archive:
one at a time in their order, or in parallel, where pg_restore says by number which begins and which is done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .archive.entry import Entry
from .archive.toc import Toc
from .progress import ALMOST, LARGE_OBJECTS, LEAST_WEIGHT
from .restore_log import PREFIX

SHARES = {"pre-data": 0.05, "data": 0.65, "post-data": 0.30}
PARALLEL = re.compile(PREFIX + r"entering main parallel loop$")
BEGUN = re.compile(PREFIX + r"(?:launching|processing(?: missed)?) item (\d+) ")
FINISHED = re.compile(PREFIX + r"(?:finished|skipping) item (\d+) ")
ROWS = re.compile(PREFIX + r'processing data for table "(.+)"$')
BLOBS = re.compile(PREFIX + r"processing BLOBS$")
CREATING = re.compile(PREFIX + r'creating ([A-Z ]+) "(.+)"$')
EXECUTING = re.compile(PREFIX + r"executing (?!SELECT )([A-Z ]+ .+)$")
DROPPING = re.compile(PREFIX + r"(dropping .+)$")
# What reads whole tables.
HEAVY = frozenset({"INDEX", "CONSTRAINT", "FK CONSTRAINT", "MATERIALIZED VIEW DATA"})
HEAVIER = 20
# An entry of the data section without rows, such as a sequence's state.
LIGHT = 64


class RestoreProgress:
    """Adds up the lines and bytes of one restore.

    `toc` as far as it is restored (`restored.Restored.toc`), None for plain SQL; `bytes_total` of what is fed
    in, None when pg_restore reads the file itself; `sizes` are `Contents.sizes`. `step` is what it does, in
    words, and may be set by who knows better. Not thread-safe.
    """

    def __init__(
        self, toc: Toc | None, bytes_total: int | None = None, sizes: Mapping[int, int] | None = None
    ) -> None:
        entries = toc.entries if toc else ()
        self._entries = {entry.dump_id: entry for entry in entries}
        self._order = list(self._entries)
        self._at = {dump_id: index for index, dump_id in enumerate(self._order)}
        self._by_label = {_label(entry): entry.dump_id for entry in reversed(entries)}
        self._sizes = sizes or {}
        self._total = dict.fromkeys(SHARES, 0)
        self._done_weight = dict.fromkeys(SHARES, 0)
        for entry in entries:
            if entry.section in SHARES:
                self._total[entry.section] += self._weight(entry)
        self._bytes_total = bytes_total
        self._done: set[int] = set()
        self._passed = 0
        self._running: dict[int, str] = {}
        self._parallel = False
        self._highest = 0.0
        self.bytes = 0
        self.step = ""

    @property
    def current(self) -> tuple[str, ...]:
        """The tables being loaded ("schema.table"), in the order they began."""
        return tuple(label for label in self._running.values() if label)

    def feed(self, line: str) -> bool:
        """Take in a line of stderr; true when it changed something worth showing."""
        line = line.rstrip("\r\n")
        if match := BEGUN.match(line):
            self._begin(int(match[1]))
        elif match := FINISHED.match(line):
            self._finish(int(match[1]))
        elif match := ROWS.match(line):
            self._begin_labelled(f"TABLE DATA {match[1]}", f"loading {match[1]}")
        elif BLOBS.match(line):
            self._begin_large_objects()
        elif match := CREATING.match(line):
            self._begin_labelled(f"{match[1]} {match[2]}", f"creating {match[1].lower()} {match[2]}")
        elif match := EXECUTING.match(line):
            self._begin_labelled(match[1], f"executing {match[1]}")
        elif match := DROPPING.match(line):
            self.step = match[1]
        elif PARALLEL.match(line):
            self._parallel = True
            self._leave(set(self._running))
        else:
            return False
        return True

    def advance(self, total_bytes: int) -> None:
        """`total_bytes` have gone in so far."""
        self.bytes = max(self.bytes, total_bytes)

    def share(self) -> float:
        """From 0 to 0.99: never falls, and full only when the caller knows that all is done."""
        fed = min(self.bytes / self._bytes_total, 1.0) if self._bytes_total else None
        present = {section: share for section, share in SHARES.items() if self._total[section]}
        if present:
            reached = sum(share * self._fraction(section, fed) for section, share in present.items())
            reached /= sum(present.values())
        else:
            reached = fed or 0.0
        self._highest = max(self._highest, min(reached, ALMOST))
        return self._highest

    def _fraction(self, section: str, fed: float | None) -> float:
        done = self._done_weight[section] / self._total[section]
        # pg_restore takes in little before the first rows, and nothing after the last.
        return max(done, fed) if section == "data" and fed is not None else done

    def _weight(self, entry: Entry) -> int:
        if entry.section == "data":
            return self._sizes.get(entry.dump_id, 0) + LEAST_WEIGHT if entry.has_data else LIGHT
        return HEAVIER if entry.kind in HEAVY else 1

    def _begin_labelled(self, label: str, step: str) -> None:
        self.step = step
        dump_id = self._by_label.get(label)
        if dump_id is not None and not self._parallel:
            self._begin(dump_id)

    def _begin_large_objects(self) -> None:
        self.step = f"loading {LARGE_OBJECTS}"
        if not self._parallel:
            rest = (self._entries[dump_id] for dump_id in self._order[self._passed :])
            following = (e.dump_id for e in rest if e.kind == "BLOBS" and e.dump_id not in self._running)
            self._begin(next(following, 0))

    def _begin(self, dump_id: int) -> None:
        entry = self._entries.get(dump_id)
        if entry is None or dump_id in self._done or dump_id in self._running:
            return
        if not self._parallel:
            self._pass(self._at[dump_id])
        self._running.setdefault(dump_id, _shown(entry))

    def _pass(self, index: int) -> None:
        """One at a time in their order: whatever lies before is done, or was left out. Only privileges and
        materialized views come at the end, wherever they lie."""
        self._leave({*self._order[self._passed : index], *self._running})
        self._passed = max(self._passed, index)

    def _finish(self, dump_id: int) -> None:
        if dump_id in self._entries:
            self._leave({dump_id})

    def _leave(self, dump_ids: set[int]) -> None:
        for dump_id in dump_ids - self._done:
            self._done.add(dump_id)
            entry = self._entries[dump_id]
            if entry.section in SHARES:
                self._done_weight[entry.section] += self._weight(entry)
        for dump_id in dump_ids:
            self._running.pop(dump_id, None)


def _label(entry: Entry) -> str:
    """As pg_restore names an entry that it begins with, without its quotes."""
    place = f"{entry.schema}." if entry.schema and entry.kind != "SEQUENCE SET" else ""
    return f"{entry.kind} {place}{entry.name}"


def _shown(entry: Entry) -> str:
    """What of it to show as a table being loaded; "" where it is none."""
    if entry.kind == "TABLE DATA":
        return f"{entry.schema}.{entry.name}"
    return LARGE_OBJECTS if entry.kind == "BLOBS" else ""
