"""What a selection from an archive lacks, in words for whoever made it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set

from .entry import Entry
from .relations import Relations
from .toc import Toc

# Comments and privileges of what is missing are not worth a word.
SILENT = frozenset({"COMMENT", "ACL", "SECURITY LABEL", "DEFAULT ACL", "STATISTICS DATA"})
INDEXES = frozenset({"INDEX", "CONSTRAINT"})
MOST = 50
NAMED = 3


def lacking(toc: Toc, relations: Relations, ids: Set[int], left_out: Set[int]) -> list[str]:
    """Sentences; at most MOST, the last then says how many more there are."""
    found = [*_left_out(toc, relations, left_out), *_unmet(toc, relations, ids)]
    more = len(found) - MOST
    return found if more <= 0 else [*found[:MOST], f"And {more} more."]


def described(entry: Entry) -> str:
    """E.g. "table public.orders", "foreign key orders_customer of public.orders"."""
    name = f"{entry.schema}.{entry.name}" if entry.schema else entry.name
    return f"{entry.kind.lower()} {name}"


def _left_out(toc: Toc, relations: Relations, left_out: Set[int]) -> Iterator[str]:
    for entry in toc.entries:
        if entry.dump_id not in left_out:
            continue
        table = ".".join(relations.of.get(entry.dump_id, ("", "")))
        if entry.kind == "FK CONSTRAINT":
            constraint = entry.name.removeprefix(relations.of[entry.dump_id][1]).strip()
            yield (
                f"The foreign key {constraint} of table {table} is left out: the table it refers to"
                " is not chosen."
            )
        elif entry.kind == "TABLE ATTACH":
            whole = ".".join(relations.parent.get((entry.schema, entry.name), ("", "")))
            yield f"Table {table} comes as a table of its own: {whole}, whose partition it is, is not chosen."
        elif entry.kind == "SEQUENCE" and (entry.schema, entry.name) in relations.identities:
            yield f"Sequence {table} is left out: it is a part of a table that is not chosen."


def _unmet(toc: Toc, relations: Relations, ids: Set[int]) -> Iterator[str]:
    by: dict[int, list[Entry]] = defaultdict(list)
    for entry in toc.entries:
        if entry.dump_id in ids and entry.kind not in SILENT:
            for dump_id in entry.depends_on:
                need = None if dump_id in ids else toc.by_id.get(dump_id)
                if need and need.kind not in SILENT and not _free(entry, need, relations):
                    by[dump_id].append(entry)
    for dump_id, entries in by.items():
        names = ", ".join(described(entry) for entry in entries[:NAMED])
        more = f" and {len(entries) - NAMED} more" if len(entries) > NAMED else ""
        verb = "needs" if len(entries) == 1 else "need"
        yield f"{_capital(described(toc.by_id[dump_id]))} is not chosen; {names}{more} {verb} it."


def _free(entry: Entry, need: Entry, relations: Relations) -> bool:
    """Partitions, their indexes and the sequences of tables are created by themselves, and attached later."""
    if entry.kind in INDEXES:
        return need.kind in INDEXES
    key, table = (entry.schema, entry.name), relations.of.get(need.dump_id)
    if entry.kind == "SEQUENCE":
        return key not in relations.identities and table == relations.table.get(key)
    return (
        entry.kind in {"TABLE", "FOREIGN TABLE"} and table is not None and table == relations.parent.get(key)
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
