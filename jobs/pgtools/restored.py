"""What of an archive comes with a restore's options, and which roles that needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .archive.entry import Entry
from .archive.select import EXTENSION_COMMENTS, Selection, selection
from .archive.toc import Toc
from .restore_flags import RestoreFlags

# The kinds of entries that a switch leaves out.
LEAVES_OUT = {
    "no_comments": frozenset({"COMMENT"}),
    "no_security_labels": frozenset({"SECURITY LABEL"}),
    "no_policies": frozenset({"POLICY", "ROW SECURITY"}),
    "no_publications": frozenset({"PUBLICATION", "PUBLICATION TABLE", "PUBLICATION TABLES IN SCHEMA"}),
    "no_subscriptions": frozenset({"SUBSCRIPTION", "SUBSCRIPTION TABLE"}),
}
PRIVILEGES = frozenset({"ACL", "DEFAULT ACL"})
# From 16 on the row types of tables are locked too: six locks instead of five for a table with a primary key
# and long values, four instead of three for one without a key, as pg_locks shows.
MORE_LOCKS_SINCE = 16
MORE_LOCKS = 1.25


@dataclass(frozen=True)
class Restored:
    """`toc` with the entries that come, in their order. `chosen`: their ids where the archive's list is cut
    down, which pg_restore has to be told (archive.select.list_text); None: all. `unmatched` and `missing` as
    in `archive.select.Selection`."""

    toc: Toc
    chosen: tuple[int, ...] | None = None
    unmatched: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def restored(toc: Toc, flags: RestoreFlags, mode: str, assumable: frozenset[str] | None = None) -> Restored:
    """Into a database with data what chosen objects need is not brought along: it is there. `assumable`: the
    roles that the login may give objects to, None: all. Raises InvalidFlags for a pattern that cannot be
    used."""
    kept = foreign_public(toc, flags, assumable)
    if not (flags.selects or flags.no_extension_comments or kept):
        return Restored(replace(toc, entries=tuple(_by_switches(toc.entries, flags))))
    picked = _picked(toc, flags, mode)
    ids = tuple(dump_id for dump_id in picked.ids if dump_id not in kept)
    entries = tuple(toc.by_id[dump_id] for dump_id in ids)
    left = replace(toc, entries=tuple(_by_switches(entries, flags)))
    return Restored(left, ids, picked.unmatched, picked.missing)


def foreign_public(toc: Toc, flags: RestoreFlags, assumable: frozenset[str] | None) -> dict[int, str]:
    """Id and owner of the archive's entry of the schema public, if the login may not give it to that owner.

    Every database has that schema, and the entry does nothing but set its owner: of servers before 15 it is a
    superuser, of whom nobody thinks when a database moves to another server.
    """
    if assumable is None or not flags.restores_owners:
        return {}
    return {
        entry.dump_id: entry.owner
        for entry in toc.entries
        if (entry.kind, entry.name) == ("SCHEMA", "public")
        and entry.owner not in assumable | {"pg_database_owner"}
    }


def _picked(toc: Toc, flags: RestoreFlags, mode: str) -> Selection:
    if not (flags.selects or flags.no_extension_comments):
        return Selection(tuple(entry.dump_id for entry in toc.entries), [], [])
    return selection(
        toc,
        schemas=flags.schemas,
        exclude_schemas=flags.exclude_schemas,
        tables=flags.tables,
        exclude_tables=flags.exclude_tables,
        without=frozenset({EXTENSION_COMMENTS} if flags.no_extension_comments else ()),
        needed=mode != "existing",
    )


def roles_of(toc: Toc, flags: RestoreFlags) -> tuple[set[str], set[str]]:
    """Of what `restored` left: roles to be given objects, and roles that privileges and policies name."""
    return (toc.owners() if flags.restores_owners else set()), toc.grantees()


def locks_of(toc: Toc, flags: RestoreFlags, target_major: int) -> int:
    """About how many locks one transaction holds that restores it; with clean what is dropped has its own."""
    factor = MORE_LOCKS if target_major >= MORE_LOCKS_SINCE else 1
    return round(toc.lockable * factor * (2 if flags.clean else 1))


def _by_switches(entries: tuple[Entry, ...], flags: RestoreFlags) -> Iterator[Entry]:
    left_out = set().union(*(kinds for name, kinds in LEAVES_OUT.items() if getattr(flags, name)))
    left_out |= set() if flags.restores_privileges else PRIVILEGES
    for entry in entries:
        if entry.kind not in left_out and _in_section(entry.section, flags):
            yield entry


def _in_section(section: str, flags: RestoreFlags) -> bool:
    if flags.data_only or flags.schema_only:
        return flags.data_only is (section == "data")
    return not flags.section or section in flags.section
