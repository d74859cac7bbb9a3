"""Which entries of an archive to restore when not all are wanted, as a list for `pg_restore --use-list`.

pg_restore's own --table leaves out indexes, constraints and all else that makes a table whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import patience
from .entry import Entry
from .globs import NamePattern
from .lacking import lacking
from .relations import Key, Relations
from .toc import Toc

EXTENSION_COMMENTS = "extension comments"
# Entries that come with what they depend on, and have no use without it.
ATTACHED = frozenset({"COMMENT", "ACL", "SECURITY LABEL", "STATISTICS DATA"})
# The same, but they join two things and need both.
JOINING = frozenset(
    {"TABLE ATTACH", "INDEX ATTACH", "FK CONSTRAINT", "PUBLICATION TABLE", "PUBLICATION TABLES IN SCHEMA"}
    | {"SEQUENCE OWNED BY"}
)
# What is never brought only because something else needs it: it holds rows, or shows those of others.
NOT_BROUGHT = frozenset({"TABLE", "FOREIGN TABLE", "VIEW", "MATERIALIZED VIEW"})


@dataclass(frozen=True)
class Selection:
    """`ids`: dump ids in the archive's order. `unmatched`: the patterns that match nothing. `missing`: what
    the chosen objects need and the selection lacks, and what was left out for that, as sentences."""

    ids: tuple[int, ...]
    unmatched: list[str]
    missing: list[str]


def list_text(ids: Iterable[int]) -> str:
    """The content of a file for `pg_restore --use-list`."""
    return "".join(f"{dump_id};\n" for dump_id in ids)


def selection(
    toc: Toc,
    *,
    schemas: Sequence[str] = (),
    exclude_schemas: Sequence[str] = (),
    tables: Sequence[str] = (),
    exclude_tables: Sequence[str] = (),
    without: frozenset[str] = frozenset(),
    needed: bool = True,
) -> Selection:
    """Patterns are psql's with * and ?; "tables" are views and sequences too. Raises InvalidFlags.

    Tables come with their data, defaults, owned sequences, indexes, constraints, triggers, rules, policies,
    statistics objects, comments and privileges, and with their partitions. Foreign keys come when both tables
    are chosen, or, without `needed`, when the referring one is: the other is there. Schemas bring all that is
    in them. With both, tables are looked for in these schemas. With neither, everything is chosen. Exclusions
    come last.

    `needed`: bring also the schemas, types, functions, extensions and free sequences that the chosen ones
    need: right for an empty target, wrong for one that has them. `without`: of {"extension comments"}.
    """
    chooser = _Chooser(toc)
    chosen = chooser.chosen(schemas, tables)
    excluded = chooser.excluded(exclude_schemas, exclude_tables)
    ids = chooser.joined(chosen - excluded)
    if needed:
        ids |= chooser.needed(ids, excluded)
    else:
        ids |= chooser.foreign_keys(chosen - excluded)
    ids = chooser.with_attached(ids, chosen - excluded)
    if EXTENSION_COMMENTS in without:
        ids -= chooser.extension_comments()
    order = tuple(entry.dump_id for entry in toc.entries if entry.dump_id in ids)
    left_out = chosen - excluded - ids
    return Selection(order, chooser.unmatched, lacking(toc, chooser.relations, ids, left_out))


def _matches(pattern: NamePattern, key: Key) -> bool:
    patience.ask()
    return pattern.matches(*key)


class _Chooser:
    def __init__(self, toc: Toc) -> None:
        self.toc = toc
        self.relations = Relations(toc)
        self.unmatched: list[str] = []
        self._schemas = {entry.name: entry.dump_id for entry in toc.entries if entry.kind == "SCHEMA"}

    def chosen(self, schemas: Sequence[str], tables: Sequence[str]) -> set[int]:
        names = self._match_schemas(schemas)
        if tables:
            keys = self._match_tables(tables, within=names if schemas else None)
            return self._belonging_to(self.relations.with_parts(keys))
        if schemas:
            return self._within(names)
        return set(self.toc.by_id)

    def excluded(self, schemas: Sequence[str], tables: Sequence[str]) -> set[int]:
        keys = self.relations.with_parts(self._match_tables(tables, within=None))
        return self._within(self._match_schemas(schemas)) | self._belonging_to(keys)

    def joined(self, ids: set[int]) -> set[int]:
        """Without what joins two things of which only one is chosen, or alters a table that is not."""
        return {dump_id for dump_id in ids if not self._dangling(self.toc.by_id[dump_id], ids)}

    def foreign_keys(self, ids: set[int]) -> set[int]:
        return {dump_id for dump_id in ids if self.toc.by_id[dump_id].kind == "FK CONSTRAINT"}

    def needed(self, ids: set[int], excluded: set[int]) -> set[int]:
        """What those need, and what that needs, of what may be brought along."""
        found: set[int] = set()
        waiting = list(ids)
        while waiting:
            entry = self.toc.by_id[waiting.pop()]
            for dump_id in self._prerequisites(entry):
                if dump_id not in ids and dump_id not in found and dump_id not in excluded:
                    brought = self._brought(dump_id)
                    found |= brought
                    waiting += brought
        return found

    def with_attached(self, ids: set[int], chosen: set[int]) -> set[int]:
        """With the comments, privileges and labels of what is there, and without those of what is not."""
        attached = {entry.dump_id for entry in self.toc.entries if entry.kind in ATTACHED}
        return (ids - attached) | {dump_id for dump_id in attached if self._comes(dump_id, ids, chosen)}

    def extension_comments(self) -> set[int]:
        return {
            entry.dump_id
            for entry in self.toc.entries
            if entry.kind == "COMMENT" and entry.name.startswith("EXTENSION ")
        }

    def _match_schemas(self, patterns: Sequence[str]) -> set[str]:
        names = {entry.schema for entry in self.toc.entries if entry.schema} | set(self._schemas)
        return {name for _, name in self._match(patterns, 0, {("", name) for name in names})}

    def _match_tables(self, patterns: Sequence[str], *, within: set[str] | None) -> set[Key]:
        keys = {key for key in self.relations.keys if within is None or key[0] in within}
        return self._match(patterns, 1, keys)

    def _match(self, patterns: Sequence[str], dots: int, keys: set[Key]) -> set[Key]:
        found: set[Key] = set()
        for pattern in [NamePattern(text, dots) for text in patterns]:
            matching = {key for key in keys if _matches(pattern, key)}
            if not matching:
                self.unmatched.append(pattern.text)
            found |= matching
        return found

    def _belonging_to(self, keys: set[Key]) -> set[int]:
        return {dump_id for dump_id, key in self.relations.of.items() if key in keys}

    def _within(self, schemas: set[str]) -> set[int]:
        return {
            entry.dump_id
            for entry in self.toc.entries
            if entry.schema in schemas or (entry.kind == "SCHEMA" and entry.name in schemas)
        }

    def _comes(self, dump_id: int, ids: set[int], chosen: set[int]) -> bool:
        parents = self._parents(dump_id)
        return any(parent in ids for parent in parents) if parents else dump_id in chosen

    def _dangling(self, entry: Entry, ids: set[int]) -> bool:
        key = self.relations.of.get(entry.dump_id)
        if key and (entry.kind == "SEQUENCE OWNED BY" or key in self.relations.identities):
            table = self.relations.table.get(key)
            return table in self.relations.defined and self.relations.defined[table] not in ids
        return entry.kind in JOINING and any(parent not in ids for parent in self._parents(entry.dump_id))

    def _prerequisites(self, entry: Entry) -> list[int]:
        schema = self._schemas.get(entry.schema) if entry.schema != "public" else None
        return [*self._parents(entry.dump_id), *([schema] if schema else [])]

    def _brought(self, dump_id: int) -> set[int]:
        """Nothing when it is a table, or belongs to one. A sequence comes with its state."""
        entry, key = self.toc.by_id[dump_id], self.relations.of.get(dump_id)
        if entry.kind in NOT_BROUGHT or entry.kind in ATTACHED or (key and entry.kind != "SEQUENCE"):
            return set()
        if key in self.relations.identities:
            return set()
        states = self.relations.states.get(key, set()) if key else set()
        return {dump_id} | states

    def _parents(self, dump_id: int) -> list[int]:
        """What an entry depends on, of what is in the archive, but for the ACLs that only set an order."""
        known = (self.toc.by_id.get(parent) for parent in self.toc.by_id[dump_id].depends_on)
        return [parent.dump_id for parent in known if parent and parent.kind != "ACL"]
