"""What a look before a restore finds, and the words that findings share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["stop", "warn", "ok"]
NAMED_AT_MOST = 10


@dataclass(frozen=True)
class Finding:
    """`stop`: the restore must not begin. `title` is what and which object, `detail` why it matters, `remedy`
    what to do; whole sentences, but the title without its full stop."""

    level: Level
    title: str
    detail: str = ""
    remedy: str = ""


def listed(names: Iterable[str]) -> str:
    """ "a, b and c"; of more than ten the first ten and how many more."""
    ordered = sorted(names)
    shown = ordered[:NAMED_AT_MOST]
    if len(ordered) > len(shown):
        return f"{', '.join(shown)} and {len(ordered) - len(shown)} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def counted(count: int, one: str, many: str = "") -> str:
    """ "1 table", "214 tables"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def quoted(name: str) -> str:
    """A name as SQL takes it, for statements that a user copies."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
