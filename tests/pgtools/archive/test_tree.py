"""What an archive holds is shown as people think of it."""

from __future__ import annotations

from jobs.pgtools.archive.tree import TableNode, tree
from tests.pgtools.archive.conftest import Dumps, contents_of


def test_the_sample_is_shown_with_all_its_parts(dumps: Dumps) -> None:
    contents = contents_of(dumps.tar)
    nodes = {node.name: node for node in tree(contents)}
    assert list(nodes) == ["-s", "public", "select", "tools", ""]
    assert nodes["tools"].functions == ("tidy(integer)", "total(integer)")
    public = nodes["public"]
    assert public.views == ("A view", "counted")
    assert public.sequences == ("Odd seq",)
    assert public.types == ("mood", "percent", "point3")
    assert nodes[""].others == ("extension citext", "extension pgcrypto", "publication news")
    tables = {table.name: table for table in public.tables}
    assert tables["events"] == TableNode(
        "events", "partitioned table", None, False, ("events_n_idx",), (), ("touched",)
    )
    part = tables["events_2026_eu"]
    assert (part.kind, part.part_of, part.has_rows) == ("partition", "public.events_2026", True)
    order = tables["Order; DROP TABLE kinds"]
    assert order.indexes == ('index on "Order"',)
    assert order.constraints == ("Order; DROP TABLE kinds_kind_fkey", "Order; DROP TABLE kinds_pkey")
    assert (nodes["select"].tables[0].name, nodes["select"].tables[0].bytes) == ("from", 13)


def test_plain_sql_has_no_tree(dumps: Dumps) -> None:
    assert tree(contents_of(dumps.plain)) == ()
