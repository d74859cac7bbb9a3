"""What is in a backup or an upload, as a tree from which single tables can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from jobs.admin.base import OwnedAdmin, account
from jobs.admin.pages import REFUSALS, page
from jobs.admin.restore_source import Source
from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.archive.tree import SchemaNode, TableNode, tree
from jobs.restoring import contents_of
from jobs.restoring.orders import LONGEST_NAME
from jobs.waiting import awaited

MOST_OPEN = 50
MOST_SHOWN = 2000  # tables on one page, and as many schemas and names of others; a filter finds the others
MOST_NAMED = 50  # in the title of one table

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Leaf:
    """A table as the page shows it. `pattern` chooses it, and is empty where no form could send its name."""

    node: TableNode
    pattern: str

    @property
    def brings(self) -> str:
        """ "3 indexes, 1 trigger"."""
        node = self.node
        counts = (
            (node.indexes, "index", "indexes"),
            (node.constraints, "constraint", "constraints"),
            (node.triggers, "trigger", "triggers"),
        )
        return ", ".join(counted(len(names), one, many) for names, one, many in counts if names)

    @property
    def names(self) -> str:
        node = self.node
        return ", ".join((*node.indexes, *node.constraints, *node.triggers)[:MOST_NAMED])


@dataclass(frozen=True)
class Branch:
    """A schema as the page shows it; `names` are ("2 views", names) of what is not chosen one by one."""

    node: SchemaNode
    pattern: str
    tables: list[Leaf]
    names: list[tuple[str, Sequence[str]]]
    is_open: bool

    @property
    def bytes(self) -> int | None:
        known = [table.bytes for table in self.node.tables if table.bytes is not None]
        return sum(known) if known else None


class Room:
    """For as many lines of a kind as one page takes."""

    def __init__(self) -> None:
        self.left = MOST_SHOWN
        self.short = False

    def take(self, found: Sequence[Thing]) -> Sequence[Thing]:
        taken = found[: self.left]
        self.left -= len(taken)
        self.short = self.short or len(taken) < len(found)
        return taken


def browse(owner: OwnedAdmin[Any], request: HttpRequest, object_id: UUID) -> HttpResponseBase:
    """The page of what the backup or upload `object_id` of `owner` holds; `?q=` narrows the tables."""
    source = Source(owner.find(request, object_id))
    sought = request.GET.get("q", "").strip()
    shown: dict[str, Any] = {"source": source, "sought": sought, "scratch": scratch_name(source.name)}
    by = account(request)
    try:
        with awaited(by, "Looking into it") as control:
            shown |= _shown(contents_of(source.row, by=by, stop=control.stopped), sought)
    except REFUSALS as error:
        shown["failure"] = str(error)
    return page(owner, request, "browse/contents.html", f"Contents of {source.name}", **shown)


def quoted(name: str) -> str:
    """A name as a pattern that means just this one; "" for what does not go into a line of a form."""
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        return ""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def scratch_name(name: str) -> str:
    """ "shop_picked_20260102", cut to what PostgreSQL takes."""
    suffix = f"_picked_{timezone.now():%Y%m%d}"
    base = "".join(letter for letter in name if letter.isprintable())
    return base.encode()[: LONGEST_NAME - len(suffix)].decode(errors="ignore") + suffix


def _shown(contents: Contents, sought: str) -> dict[str, Any]:
    branches = [_branch(node, sought) for node in tree(contents)]
    if sought:
        branches = [branch for branch in branches if branch.tables]
    tables, names = Room(), Room()
    schemas = branches[:MOST_SHOWN]
    for branch in schemas:
        branch.tables[:] = tables.take(branch.tables)
        branch.names[:] = [(kind, names.take(found)) for kind, found in branch.names]
    cut = tables.short or len(schemas) < len(branches)
    return {"contents": contents, "branches": schemas, "count": MOST_SHOWN - tables.left, "cut": cut}


def _branch(node: SchemaNode, sought: str) -> Branch:
    schema = quoted(node.name)
    tables = [
        Leaf(table, f"{schema}.{quoted(table.name)}" if schema and quoted(table.name) else "")
        for table in node.tables
        if sought.lower() in f"{node.name}.{table.name}".lower()
    ]
    kinds = (
        (node.views, "view", "views"),
        (node.functions, "function", "functions"),
        (node.sequences, "sequence", "sequences"),
        (node.types, "type", "types"),
        (node.others, "other object", "other objects"),
    )
    names: list[tuple[str, Sequence[str]]] = [
        (counted(len(found), one, many), found) for found, one, many in kinds if found
    ]
    return Branch(
        node, schema, tables, [] if sought else names, is_open=bool(sought) or len(node.tables) <= 50
    )
