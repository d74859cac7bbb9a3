"""Which table, view or sequence each entry of a table of contents belongs to.

Told from the beginning of the statement that pg_dump wrote: dependencies do not say which of the two tables
of a foreign key is its own, and are missing from archives that hold only data or only indexes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from .entry import Entry
from .sql import Token, beginning
from .toc import RELATIONS, Toc

# (schema, name); tables, views and sequences share their names.
Key = tuple[str, str]

DATA = frozenset({"TABLE DATA", "MATERIALIZED VIEW DATA", "SEQUENCE SET"})
NAMED_ALIKE = RELATIONS | DATA | {"TABLE ATTACH", "ROW SECURITY", "SEQUENCE OWNED BY"}
# After which word of its statement an entry names its table.
NAMED_AFTER = {
    "INDEX": "ON",
    "TRIGGER": "ON",
    "POLICY": "ON",
    "RULE": "TO",
    "CONSTRAINT": "TABLE",
    "CHECK CONSTRAINT": "TABLE",
    "FK CONSTRAINT": "TABLE",
    "DEFAULT": "TABLE",
}
DOT = Token("sign", ".")


class Relations:
    """`of`: dump id -> the relation it belongs to. `defined`: relation -> the dump id that creates it.
    `states`: sequence -> the dump ids that set its value. `parent`: partition -> what it is a partition of.
    `table`: sequence -> the table that owns it. `identities`: sequences made by altering their table.
    """

    def __init__(self, toc: Toc) -> None:
        self.of: dict[int, Key] = {}
        self.defined: dict[Key, int] = {}
        self.states: dict[Key, set[int]] = defaultdict(set)
        self.parent: dict[Key, Key] = {}
        self.table: dict[Key, Key] = {}
        self.identities: set[Key] = set()
        for entry in toc.entries:
            key = _relation(entry)
            if key:
                self.of[entry.dump_id] = key
                self._relate(entry, key)
        self.keys = frozenset(self.of.values())
        self._parts: dict[Key, list[Key]] = defaultdict(list)
        for part, whole in [*self.parent.items(), *self.table.items()]:
            self._parts[whole].append(part)

    def with_parts(self, keys: Iterable[Key]) -> set[Key]:
        """And their partitions, with theirs, and the sequences they own."""
        found: set[Key] = set()
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if key not in found:
                found.add(key)
                waiting += self._parts.get(key, ())
        return found

    def _relate(self, entry: Entry, key: Key) -> None:
        if entry.kind in RELATIONS:
            self.defined[key] = entry.dump_id
        elif entry.kind == "SEQUENCE SET":
            self.states[key].add(entry.dump_id)
        whole = self._whole(entry, key)
        if whole:
            (self.parent if entry.kind == "TABLE ATTACH" else self.table)[key] = whole

    def _whole(self, entry: Entry, key: Key) -> Key | None:
        """What the entry says its relation is a part of."""
        if entry.kind == "TABLE ATTACH":
            return _named_after("TABLE", beginning(entry.definition), entry.schema)
        if entry.kind == "SEQUENCE OWNED BY":
            return _named_after("BY", beginning(entry.definition), entry.schema)
        if entry.kind == "SEQUENCE" and entry.definition.startswith("ALTER TABLE"):
            self.identities.add(key)
            return _named_after("TABLE", beginning(entry.definition), entry.schema)
        return None


def _relation(entry: Entry) -> Key | None:
    if entry.kind in NAMED_ALIKE:
        return entry.schema, entry.name
    if entry.kind == "STATISTICS":
        # Their expressions may hold a FROM too, which comes before.
        found = list(beginning(entry.definition))
        last = max((at for at, token in enumerate(found) if token.keyword == "FROM"), default=len(found))
        return _named_after("FROM", iter(found[last:]), entry.schema)
    word = NAMED_AFTER.get(entry.kind)
    return _named_after(word, beginning(entry.definition), entry.schema) if word else None


def _named_after(word: str, found: Iterator[Token], schema: str) -> Key | None:
    """The name after the first such word. Archives from before 10.3 leave out the schema at times."""
    if not any(token.keyword == word for token in found):
        return None
    name = next(found, None)
    if name and name.keyword == "ONLY":
        name = next(found, None)
    if not name or name.kind not in {"word", "name"}:
        return None
    if next(found, None) == DOT and (second := next(found, None)):
        return name.value, second.value
    return schema, name.value
