"""Some schemas and tables of a dump, whole: with what belongs to them, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jobs.models import BackupJob
from jobs.restoring import MigrationOrder
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Failing, Restores, completed, number

pytestmark = pytest.mark.django_db(transaction=True)

SHOP = """
CREATE SCHEMA shop; CREATE SCHEMA other;
CREATE TYPE shop.state AS ENUM ('new', 'paid');
CREATE TABLE shop.customers (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE);
INSERT INTO shop.customers (name) SELECT 'c' || n FROM generate_series(1, 7) AS n;
CREATE TABLE shop."Orders" (id bigserial PRIMARY KEY, customer int NOT NULL REFERENCES shop.customers,
    state shop.state DEFAULT 'new', net numeric CHECK (net > 0),
    gross numeric GENERATED ALWAYS AS (net * 2) STORED);
CREATE INDEX by_state ON shop."Orders" (state) WHERE net > 1;
COMMENT ON TABLE shop."Orders" IS 'what they want'; COMMENT ON COLUMN shop."Orders".net IS 'without tax';
COMMENT ON INDEX shop.by_state IS 'for the list'; COMMENT ON SEQUENCE shop."Orders_id_seq" IS 'numbers';
INSERT INTO shop."Orders" (customer, net) SELECT 1 + n % 7, n FROM generate_series(1, 30) AS n;
CREATE FUNCTION other.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER touched BEFORE UPDATE ON shop."Orders" FOR EACH ROW EXECUTE FUNCTION other.touch();
ALTER TABLE shop."Orders" ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON shop."Orders" USING (net > 0);
CREATE STATISTICS shop.both (dependencies) ON state, net FROM shop."Orders";
GRANT SELECT ON shop."Orders" TO "sample reader";
CREATE TABLE audit (n int); CREATE TABLE audit_2025 (n int); INSERT INTO audit VALUES (1);
CREATE TABLE other.things (n int); INSERT INTO other.things VALUES (1);
CREATE VIEW shop.paid AS SELECT * FROM shop."Orders" WHERE state = 'paid';
"""
ORDERS = '"shop"."Orders"'


@pytest.fixture(scope="module")
def source(make_source: Callable[..., Source]) -> Source:
    return make_source(17, SHOP)


@pytest.fixture
def backup(restores: Restores, source: Source) -> BackupJob:
    return restores.backups.take(source.url, {}, name="shop")


def restored(
    restores: Restores, source: BackupJob | str, mode: str, flags: Mapping[str, Any], before: str = ""
) -> tuple[str, list[str]]:
    """The target's name, and the warnings."""
    server, name = servers.get(17), restores.name()
    if mode != "new":
        restores.target(server, before, name)
    at = restores.at(server, name)
    if isinstance(source, str):
        row: Any = restores.migrate(MigrationOrder(source, at, mode, name, restore_flags=flags))
    else:
        row = restores.take(at, source, mode, name, flags)
    return name, completed(row).warnings


def definitions(source: Source, name: str, *words: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Of those whose name holds one of `words`: as they are in `name`, and as they are in the source."""

    def told(database: str) -> dict[Any, Any]:
        found = sample.definitions(source.server, database)
        return {key: text for key, text in found.items() if any(word in key[1] for word in words)}

    return told(name), told(source.name)


def test_a_table_comes_with_all_that_belongs_to_it(
    restores: Restores, source: Source, backup: BackupJob
) -> None:
    expected = sample.rows(source.server, source.name)
    kept = {key: expected[key] for key in (ORDERS, '"shop"."Orders_id_seq"')}
    for origin, mode in ((backup, "empty"), (source.url, "new")):
        name, warnings = restored(restores, origin, mode, {"tables": ['shop."Orders"']})
        assert sample.rows(source.server, name) == kept
        found, wanted = definitions(source, name, "Orders", "by_state", "touch", "own", "both", "shop.state")
        lacking = {key for key, text in wanted.items() if found.get(key) != text}
        assert lacking == {("constraint", 'shop."Orders".Orders_customer_fkey')}
        assert ("comment", "index shop.by_state") in found
        assert len([warning for warning in warnings if "Orders_customer_fkey" in warning]) == 1, warnings


def test_into_a_database_that_has_the_rest(restores: Restores, source: Source, backup: BackupJob) -> None:
    """What is there and was not chosen stays as it is."""
    before = (
        SHOP.partition("CREATE INDEX by_state")[0].replace('"Orders"', "orders_of_old")
        + "CREATE FUNCTION other.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    )
    name, _ = restored(restores, backup, "existing", {"tables": ['"Orders"']}, before)
    found = sample.rows(source.server, name)
    assert found[ORDERS] == sample.rows(source.server, source.name)[ORDERS]
    assert found['"shop"."customers"'][0] == 7
    assert number(source.server, name, "SELECT count(*) FROM pg_indexes WHERE indexname = 'by_state'") == 1


def test_both_tables_bring_what_joins_them(restores: Restores, source: Source, backup: BackupJob) -> None:
    flags = {"tables": ['"Orders"', "shop.c*"], "jobs": 2}
    name, warnings = restored(restores, backup, "new", flags)
    found, wanted = definitions(source, name, "fkey", "customers")
    assert found == wanted
    assert warnings == []


def test_schemas_and_exclusions(restores: Restores, source: Source, backup: BackupJob) -> None:
    everything = set(sample.rows(source.server, source.name))
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"schemas": ["shop"]}, {key for key in everything if key.startswith('"shop"')}),
        ({"exclude_schemas": ["shop"]}, {key for key in everything if not key.startswith('"shop"')}),
        ({"exclude_tables": ["audit*", "things"]}, {key for key in everything if key.startswith('"shop"')}),
    ]
    for flags, expected in cases:
        name, _ = restored(restores, backup, "empty", flags)
        assert set(sample.rows(source.server, name)) == expected, flags


def test_a_pattern_that_matches_nothing_is_named(failing: Failing, backup: BackupJob, source: Source) -> None:
    flags = {"tables": ["shop.customers", "orders"]}
    failing.take(backup, "replace", flags, "Nothing", "orders", "double quotes")
    failing.take(backup, "existing", {"schemas": ["shup"]}, "Nothing", "shup")
    name = failing.target("replace")
    order = MigrationOrder(
        source.url, failing.restores.at(failing.server, name), "replace", name, restore_flags=flags
    )
    failing.require(failing.restores.migrate(order), "Nothing", "orders")


def test_plain_sql_is_all_or_nothing(failing: Failing, source: Source) -> None:
    plain = failing.restores.backups.take(source.url, {"format": "plain"}, name="plain")
    failing.take(plain, "replace", {"tables": ["customers"]}, "tables: the dump is plain SQL")
