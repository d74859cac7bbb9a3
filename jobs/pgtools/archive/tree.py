"""What an archive holds, as a tree for people: schemas, in them tables with what is theirs, and the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from . import patience
from .contents import Contents
from .entry import Entry
from .relations import DATA, Key, Relations
from .toc import LARGE_OBJECTS, RELATIONS, Toc

TABLES = frozenset({"TABLE", "FOREIGN TABLE"})
VIEWS = frozenset({"VIEW", "MATERIALIZED VIEW"})
FUNCTIONS = frozenset({"FUNCTION", "PROCEDURE", "AGGREGATE"})
TYPES = frozenset({"TYPE", "DOMAIN"})
CONSTRAINTS = frozenset({"CONSTRAINT", "CHECK CONSTRAINT", "FK CONSTRAINT"})
# Not worth a line of their own: they describe something else, or how to restore.
UNSEEN = LARGE_OBJECTS | {
    "ENCODING", "STDSTRINGS", "SEARCHPATH", "DATABASE", "DATABASE PROPERTIES", "SCHEMA", "SHELL TYPE", "ACL",
    "DEFAULT ACL", "COMMENT", "SECURITY LABEL", "INDEX ATTACH", "STATISTICS DATA", "PUBLICATION TABLE",
    "PUBLICATION TABLES IN SCHEMA",
}  # fmt: skip


@dataclass(frozen=True)
class TableNode:
    """`kind`: "table", "partitioned table", "partition" or "foreign table"; `part_of`: "schema.name" of what
    it is a partition of, or "". `bytes`: of its data in the artifact, compressed as they lie there; None
    where the container does not tell. `has_rows`: data of it are in the archive, be they empty."""

    name: str
    kind: str
    bytes: int | None
    has_rows: bool
    indexes: tuple[str, ...]
    constraints: tuple[str, ...]
    triggers: tuple[str, ...]
    part_of: str = ""


@dataclass(frozen=True)
class SchemaNode:
    """Names in order. `name` is "" for what is in no schema. `sequences`: those that no table owns. `others`:
    with their kind, e.g. "collation german"."""

    name: str
    tables: tuple[TableNode, ...] = ()
    views: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def tree(contents: Contents) -> tuple[SchemaNode, ...]:
    """In order of names, what is in no schema last; () for plain SQL, which has no table of contents."""
    toc = contents.toc
    if toc is None:
        return ()
    relations = Relations(toc)
    belonging = _belonging(toc, relations)
    owned = _names_by_schema(relations.table)
    grouped: dict[str, list[Entry]] = defaultdict(list)
    for entry in toc.entries:
        if entry.kind == "SCHEMA":
            grouped[entry.name]
        elif entry.kind not in UNSEEN:
            grouped[entry.schema].append(entry)
    nodes = [_schema(name, grouped[name], contents, relations, belonging, owned[name]) for name in grouped]
    return tuple(sorted(nodes, key=lambda node: (not node.name, node.name)))


def _schema(
    name: str,
    entries: list[Entry],
    contents: Contents,
    relations: Relations,
    belonging: dict[Key, list[Entry]],
    owned: set[str],
) -> SchemaNode:
    patience.ask()

    def names(kinds: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({entry.name for entry in entries if entry.kind in kinds}))

    tables = {entry.name for entry in entries if entry.kind in TABLES | {"TABLE DATA"}}
    others = {
        f"{entry.kind.lower()} {entry.name}"
        for entry in entries
        if entry.kind not in RELATIONS | DATA | FUNCTIONS | TYPES and entry.dump_id not in relations.of
    }
    return SchemaNode(
        name,
        tuple(_table((name, table), contents, relations, belonging) for table in sorted(tables)),
        names(VIEWS),
        names(FUNCTIONS),
        tuple(sequence for sequence in names({"SEQUENCE", "SEQUENCE SET"}) if sequence not in owned),
        names(TYPES),
        tuple(sorted(others)),
    )


def _table(
    key: Key, contents: Contents, relations: Relations, belonging: dict[Key, list[Entry]]
) -> TableNode:
    entries = belonging[key]
    part_of = relations.parent.get(key)
    data = [entry for entry in entries if entry.kind == "TABLE DATA"]
    sizes = [contents.sizes[entry.dump_id] for entry in data if entry.dump_id in contents.sizes]

    def names(kinds: Iterable[str]) -> tuple[str, ...]:
        found = (entry.name.removeprefix(f"{key[1]} ") for entry in entries if entry.kind in kinds)
        return tuple(sorted(found))

    return TableNode(
        key[1],
        _kind(entries, bool(part_of)),
        sum(sizes) if sizes else None,
        bool(data),
        names({"INDEX"}),
        names(CONSTRAINTS),
        names({"TRIGGER"}),
        ".".join(part_of) if part_of else "",
    )


def _names_by_schema(keys: Iterable[Key]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for schema, name in keys:
        found[schema].add(name)
    return found


def _kind(entries: list[Entry], partition: bool) -> str:
    if partition:
        return "partition"
    for entry in entries:
        if entry.kind == "FOREIGN TABLE":
            return "foreign table"
        if entry.kind == "TABLE" and "\nPARTITION BY " in entry.definition:
            return "partitioned table"
    return "table"


def _belonging(toc: Toc, relations: Relations) -> dict[Key, list[Entry]]:
    found: dict[Key, list[Entry]] = defaultdict(list)
    for entry in toc.entries:
        key = relations.of.get(entry.dump_id)
        if key:
            found[key].append(entry)
    return found
