from __future__ import annotations

import re
from typing import Any

import pytest

from jobs.pgtools import tables
from jobs.pgtools.errors import ToolFailed, UnmatchedPattern
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.patterns import to_regexes
from jobs.pgtools.progress import LARGE_OBJECTS, Started, parse

from .conftest import Place

SELECTIONS: list[dict[str, Any]] = [
    {},
    {"tables": ["orders"]},
    {"tables": ["*.orders"]},
    {"tables": ["ORDERS"]},
    {"tables": ['"Old Stuff"."Table.1"']},
    {"tables": ["o?ders", "events*"]},
    {"tables": ["(orders|customers)"]},
    {"tables": ["orders", "customers"], "exclude_tables": ["c*"]},
    {"schemas": ["public"]},
    {"schemas": ['"Old"*', "a*"]},
    {"exclude_schemas": ["public"]},
    {"exclude_tables": ["orders"]},
    {"exclude_tables": ["audit.*", "events_2026"]},
    {"exclude_table_data": ["*.orders"]},
    {"no_unlogged_table_data": True},
    {"schema_only": True},
    {"section": ["post-data"]},
    {"section": ["data"]},
    {"large_objects": False},
    {"schemas": ["audit"], "large_objects": True},
]


@pytest.mark.parametrize(
    ("pattern", "regexes"),
    [
        ("Orders", ("^(orders)$",)),
        ('"Orders"', ("^(Orders)$",)),
        ("a*.b?", ("^(a.*)$", "^(b.)$")),
        ('"a.b"."c""d"', ("^(a\\.b)$", '^(c"d)$')),
        ('x"Y*"z', ("^(xY\\*z)$",)),
        ("a$b", ("^(a\\$b)$",)),
        ("[ab]+", ("^([ab]+)$",)),
        ("a[]", ("^(a\\[])$",)),
        ("ÄÖ", ("^(ÄÖ)$",)),
    ],
)
def test_patterns_are_read_as_psql_reads_them(pattern: str, regexes: tuple[str, ...]) -> None:
    assert to_regexes(pattern) == regexes


@pytest.mark.parametrize("values", SELECTIONS)
def test_the_tables_expected_are_those_that_pg_dump_dumps(shop: Place, values: dict[str, Any]) -> None:
    _, log = shop.dump(values)
    dumped = {event.table for event in map(parse, log.splitlines()) if isinstance(event, Started)}
    with shop.connect() as conn:
        assert tables.tables(conn, DumpFlags.from_dict(values)).keys() == dumped


def test_sizes_count_rows_and_not_indexes(shop: Place) -> None:
    with shop.connect() as conn:
        sizes = tables.tables(conn, DumpFlags())
        row = conn.execute("SELECT pg_table_size('orders')").fetchone()
    assert row is not None
    assert sizes["public.orders"] == row[0] > 100_000
    assert sizes["audit.orders"] == 0
    assert sizes[LARGE_OBJECTS] > 0


def test_a_locked_table_does_not_hold_up_the_sizes(shop: Place) -> None:
    with shop.connect() as holder, shop.connect() as conn, holder.transaction():
        holder.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        assert "public.orders" in tables.tables(conn, DumpFlags())


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"tables": ["nope", "orders"]}, "tables 'nope'"),
        ({"tables": ["Table.1"]}, "tables 'Table.1'"),
        ({"schemas": ["nope"]}, "schemas 'nope'"),
        ({"extensions": ["nope"]}, "extensions 'nope'"),
    ],
)
def test_a_pattern_that_matches_nothing_is_named_and_pg_dump_agrees(
    shop: Place, values: dict[str, Any], named: str
) -> None:
    with shop.connect() as conn, pytest.raises(UnmatchedPattern, match=re.escape(named)):
        tables.require_matches(conn, DumpFlags.from_dict(values))
    with pytest.raises(ToolFailed, match="no matching"):
        shop.dump(values)


@pytest.mark.parametrize(
    "values",
    [
        {"tables": ["named", "counted", "orders_id_seq"]},
        {"schemas": ["audit"]},
        {"extensions": ["plpgsql"]},
    ],
)
def test_views_sequences_schemas_and_extensions_match(shop: Place, values: dict[str, Any]) -> None:
    with shop.connect() as conn:
        assert tables.require_matches(conn, DumpFlags.from_dict(values)) == []
    shop.dump(values)


def test_an_exclusion_that_excludes_nothing_is_a_warning(shop: Place) -> None:
    flags = DumpFlags.from_dict({"exclude_table_data": ["custmers", "orders"]})
    with shop.connect() as conn:
        assert tables.require_matches(conn, flags) == [
            "exclude_table_data 'custmers' matches nothing, so it left nothing out."
        ]
