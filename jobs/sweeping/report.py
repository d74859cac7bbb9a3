"""What a sweep has found, as it is kept in `Storage.swept`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

MOST_LISTED = 100  # of each kind; the counts say how many there are


@dataclass
class Found:
    """Objects of one kind: how many, their bytes, and the first of them with what there is to say."""

    count: int = 0
    bytes: int = 0
    first: list[dict[str, Any]] = field(default_factory=list)

    def count_in(self, size: int) -> None:
        self.count += 1
        self.bytes += size

    def add(self, key: str, size: int, words: str, **more: str) -> None:
        self.count_in(size)
        if len(self.first) < MOST_LISTED:
            self.first.append({"key": key, "size": size, "words": words} | more)


@dataclass
class Swept:
    """`known`: objects that rows speak of; `foreign`: that look like nothing of pgbr's. `strays` are left
    alone, `deleted` are gone, `lost` are copies without their object, `back` were lost and are there again.
    """

    known: Found = field(default_factory=Found)
    foreign: Found = field(default_factory=Found)
    strays: Found = field(default_factory=Found)
    deleted: Found = field(default_factory=Found)
    lost: Found = field(default_factory=Found)
    back: Found = field(default_factory=Found)
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
