"""Fills a database with a shop of any size: words, numbers, uuids, jsonb and bytes, made by the server.

The same size and seed give the same rows. Only one batch of each table is generated; the others repeat it
under new keys. A batch is larger than what zstd:3 looks back on (2 MiB), so repeating helps no compressor.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

MB = 10**6
WORDS = (
    "amber basin cedar delta ember fjord glade harbor island jasmine kernel lagoon meadow nectar opal "
    "prairie quartz river summit timber umbra valley willow xenon yonder zephyr anchor beacon canyon "
    "drift eagle falcon garnet hazel indigo juniper kestrel lantern marble nutmeg orchid pebble quill "
    "rowan sable thistle"
)

SCHEMA = sql.SQL("""
CREATE TABLE customers (id bigint NOT NULL, uid uuid NOT NULL, name text NOT NULL, email text NOT NULL,
    since date NOT NULL, preferences jsonb NOT NULL);
CREATE TABLE orders (id bigint NOT NULL, customer_id bigint NOT NULL, uid uuid NOT NULL,
    placed_at timestamptz NOT NULL, quantity int NOT NULL, amount numeric(12,2) NOT NULL,
    status text NOT NULL, note text NOT NULL, details jsonb NOT NULL);
CREATE TABLE readings (id bigint NOT NULL, sensor int NOT NULL, at timestamptz NOT NULL,
    low float8 NOT NULL, high float8 NOT NULL, mean numeric(10,4) NOT NULL);
CREATE TABLE files (id bigint NOT NULL, name text NOT NULL, kind text NOT NULL, content bytea NOT NULL);
CREATE TEMP TABLE words AS SELECT string_to_array({words}, ' ') AS all_of_them;
CREATE FUNCTION pg_temp.some_words(n int) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT string_agg(all_of_them[1 + floor(random() * cardinality(all_of_them))::int], ' ')
    FROM words, generate_series(1, n) $$;
CREATE FUNCTION pg_temp.noise(n int) RETURNS bytea LANGUAGE sql VOLATILE AS $$
    SELECT decode(string_agg(md5(random()::text), ''), 'hex') FROM generate_series(1, n / 16) $$
""").format(words=sql.Literal(WORDS))

INDEXES = sql.SQL("""
ALTER TABLE customers ADD PRIMARY KEY (id);
ALTER TABLE orders ADD PRIMARY KEY (id);
CREATE INDEX ON orders (customer_id);
CREATE INDEX ON orders (placed_at);
ALTER TABLE readings ADD PRIMARY KEY (id);
ALTER TABLE files ADD PRIMARY KEY (id)
""")


@dataclass(frozen=True)
class Table:
    """`share` of the wanted size goes to its rows; `rows` make one batch, `first` selects them for
    `i` = 1 … rows; `others` are its columns but for the id."""

    name: str
    share: float
    rows: int
    first: str
    others: str


TABLES = [
    Table(
        "orders", 0.57, 25_000,
        """i, 1 + floor(random() * 50000), md5(random()::text)::uuid,
        timestamptz '2024-01-01Z' + i * interval '37 s', 1 + floor(random() * 9), random() * 5000,
        (ARRAY['open', 'paid', 'packed', 'shipped', 'returned'])[1 + i % 5], pg_temp.some_words(5 + i % 8),
        jsonb_build_object('sku', upper(substr(md5(random()::text), 1, 10)), 'gift', i % 7 = 0,
            'weight', round((random() * 30)::numeric, 3),
            'tags', string_to_array(pg_temp.some_words(3), ' '))""",
        "customer_id, uid, placed_at, quantity, amount, status, note, details",
    ),
    Table(
        "readings", 0.125, 120_000,
        """i, i % 500, timestamptz '2025-01-01Z' + i * interval '1 s', random() * 20, 20 + random() * 20,
        15 + random() * 10""",
        "sensor, at, low, high, mean",
    ),
    Table(
        "customers", 0.06, 30_000,
        """i, md5(random()::text)::uuid, initcap(pg_temp.some_words(2)),
        substr(md5(random()::text), 1, 9) || '@example.com', date '2015-01-01' + i % 3650,
        jsonb_build_object('language', (ARRAY['en', 'de', 'fr', 'cs'])[1 + i % 4],
            'newsletter', i % 3 = 0)""",
        "uid, name, email, since, preferences",
    ),
    Table(
        "files", 0.13, 400,
        """i, pg_temp.some_words(2) || '.bin', 'application/octet-stream',
        pg_temp.noise(4096 + floor(random() * 32768)::int)""",
        "name, kind, content",
    ),
]  # fmt: skip


def fill(url: str, megabytes: int, *, seed: float = 0.42) -> int:
    """Make the tables in an empty database of `megabytes` in all, indexes (about 15 %) counted in, and leave
    it analysed and at rest; its size in bytes. `seed`: -1 to 1."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute("SELECT setseed(%s)", [seed])
        connection.execute(SCHEMA)
        for table in TABLES:
            _fill(connection, table, int(megabytes * MB * table.share))
        connection.execute(INDEXES)
        connection.execute("VACUUM (FREEZE, ANALYZE)")
        return _number(connection, sql.SQL("SELECT pg_database_size(current_database())"))


def _fill(connection: psycopg.Connection[tuple[object, ...]], table: Table, size: int) -> None:
    name = sql.Identifier(table.name)
    first = sql.SQL("INSERT INTO {} SELECT {} FROM generate_series(1, {}) i")
    connection.execute(first.format(name, sql.SQL(table.first), sql.Literal(table.rows)))
    batch = _number(connection, sql.SQL("SELECT pg_table_size({})").format(sql.Literal(table.name)))
    again = sql.SQL("INSERT INTO {0} SELECT id + {1}, {2} FROM {0} WHERE ctid < {3}::tid AND id <= {4}")
    end = sql.Literal(f"({_pages(connection, table.name)},0)")
    for number in range(1, max(1, round(size / batch))):
        ids, rows = sql.Literal(number * table.rows), sql.Literal(table.rows)
        connection.execute(again.format(name, ids, sql.SQL(table.others), end, rows))


def _pages(connection: psycopg.Connection[tuple[object, ...]], table: str) -> int:
    """Those of the first batch: reading no further than them keeps each further one as cheap as the last."""
    statement = sql.SQL("SELECT pg_relation_size({}) / current_setting('block_size')::int")
    return _number(connection, statement.format(sql.Literal(table)))


def _number(connection: psycopg.Connection[tuple[object, ...]], query: sql.SQL | sql.Composed) -> int:
    row = connection.execute(query).fetchone()
    return int(str(row[0])) if row else 0
