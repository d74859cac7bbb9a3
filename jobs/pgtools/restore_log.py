"""What failed in a restore, from what pg_restore says; it goes on after errors unless told to stop."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .archive.toc import Toc

# Helpers of a parallel restore write "pg_restore:", the space and the rest separately, so they get mixed up.
PREFIX = r"(?:pg_restore:| )*"
ENTRY = re.compile(PREFIX + r"from TOC entry (\d+); \d+ \d+ (.*)$")
ERROR = re.compile(PREFIX + r"(?:error|fatal): +(.*)$")
IGNORED = re.compile(PREFIX + r"warning: errors ignored on restore: (\d+)$")
DETAIL = re.compile(r"(?:DETAIL|HINT): +(.*)$")
# Errors of the server, which belong to the entry named last; others are pg_restore's own.
OF_SERVER = re.compile(r"(?:could not execute query: +)?(?:ERROR|FATAL): +|COPY failed|error returned by PQ")
NOISE = re.compile(r"could not execute query: +|\b(?:ERROR|FATAL): +")
SHOWN = 20
LONGEST = 500


class RestoreErrors:
    """Fed all lines of stderr, in their order; holds no more than it shows. Not thread-safe.

    `count`: errors so far. pg_restore's own number at the end counts some twice when it works in parallel.
    `first`: the first 20, each as "TABLE public.orders: relation "orders" already exists (detail)".
    `complete`: pg_restore went through to its end and said that it ignored errors; anything else that ends
    with a failure broke off. With `toc` objects are named with their schemas.
    """

    def __init__(self, toc: Toc | None = None) -> None:
        self._toc = toc
        self._object = ""
        self._in_first = False
        self.count = 0
        self.first: list[str] = []
        self.complete = False

    def feed(self, line: str) -> None:
        line = line.rstrip("\r\n")
        if match := IGNORED.match(line):
            self.complete, self._in_first = True, False
            self.count = self.count or int(match[1])
        elif match := ENTRY.match(line):
            self._object, self._in_first = self._named(int(match[1]), match[2]), False
        elif match := ERROR.match(line):
            self._begin(match[1])
        elif self._in_first and (match := DETAIL.match(line)):
            self._add(f" ({match[1].rstrip('.')})")
        self.complete &= bool(IGNORED.match(line)) or not line.strip()

    def summary(self) -> str:
        """One line for people; "" when nothing failed."""
        if not self.count:
            return ""
        errors = "1 error" if self.count == 1 else f"{self.count:,} errors"
        return f"{errors}, the first: {self.first[0]}" if self.first else errors

    def _begin(self, text: str) -> None:
        self.count += 1
        self.complete = False
        self._in_first = len(self.first) < SHOWN
        if self._in_first:
            place = f"{self._object}: " if self._object and OF_SERVER.match(text) else ""
            self.first.append("")
            self._add(place + NOISE.sub("", text))

    def _add(self, text: str) -> None:
        whole = self.first[-1] + text
        self.first[-1] = whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}…"

    def _named(self, dump_id: int, words: str) -> str:
        """`words` are kind, name and owner without quotes or schema."""
        entry = self._toc.by_id.get(dump_id) if self._toc else None
        if entry is None:
            return words.rpartition(" ")[0] or words
        return f"{entry.kind} {entry.schema}.{entry.name}" if entry.schema else f"{entry.kind} {entry.name}"


def failures(log: str | Iterable[str], toc: Toc | None = None) -> RestoreErrors:
    """What a log that was kept tells; of one that was cut down less than there was."""
    errors = RestoreErrors(toc)
    for line in log.splitlines() if isinstance(log, str) else log:
        errors.feed(line)
    return errors
