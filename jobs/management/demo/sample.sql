-- A small shop with a bit of everything that a dump has to carry. The same rows on every machine: values come
-- from counters and hashes, never from random() or the clock.
SET TimeZone = 'UTC';

CREATE TYPE order_state AS ENUM ('placed', 'paid', 'shipped', 'returned');
CREATE DOMAIN email AS text CHECK (VALUE ~ '^[^@ ]+@[^@ ]+$');

CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    email email NOT NULL UNIQUE,
    tags text[] NOT NULL DEFAULT '{}',
    preferences jsonb NOT NULL DEFAULT '{}',
    joined timestamptz NOT NULL,
    note text
);
INSERT INTO customers (name, email, tags, preferences, joined, note)
SELECT (ARRAY['Ada', 'Søren', 'Željko', 'Zoë', '美玲', 'Иван', 'Jürgen', 'O''Neil'])[1 + n % 8] || ' ' || n,
    'customer' || n || '@example.org',
    CASE n % 3 WHEN 0 THEN '{}'::text[] WHEN 1 THEN ARRAY['new'] ELSE ARRAY['regular', 'tag, with "quotes"'] END,
    jsonb_build_object('newsletter', n % 2 = 0, 'limit', n % 50 * 10.5, 'path', ARRAY['a\b', E'line\nbreak']),
    timestamptz '2024-01-01 00:00+00' + n * interval '97 minutes',
    CASE WHEN n % 5 = 0 THEN NULL WHEN n % 5 = 1 THEN '' ELSE E'tab\there, backslash \\ and \\.' END
FROM generate_series(1, 4000) AS n;

CREATE TABLE products (
    id integer PRIMARY KEY,
    name text NOT NULL,
    price numeric(10, 2) NOT NULL CHECK (price > 0),
    price_with_tax numeric(12, 4) GENERATED ALWAYS AS (price * 1.19) STORED,
    picture bytea,
    weight double precision
);
INSERT INTO products (id, name, price, picture, weight)
SELECT n, 'Product ' || md5(n::text), (n * 37 % 10000 + 1) / 100.0,
    decode(repeat(md5(n::text), 40), 'hex'), n / 7.0
FROM generate_series(1, 500) AS n;

CREATE TABLE orders (
    id bigint NOT NULL,
    customer_id bigint NOT NULL REFERENCES customers,
    state order_state NOT NULL,
    placed timestamptz NOT NULL,
    PRIMARY KEY (id, placed)
) PARTITION BY RANGE (placed);
CREATE TABLE orders_2024 PARTITION OF orders FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE orders_2025 PARTITION OF orders FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
INSERT INTO orders
SELECT n, 1 + n * 7 % 4000, (enum_range(NULL::order_state))[1 + n % 4],
    timestamptz '2024-01-01 00:00+00' + n * interval '51 minutes'
FROM generate_series(1, 20000) AS n;
CREATE INDEX orders_customer ON orders (customer_id) WHERE state <> 'returned';

CREATE TABLE order_lines (
    order_id bigint NOT NULL,
    line smallint NOT NULL,
    product_id integer NOT NULL REFERENCES products,
    quantity integer NOT NULL,
    PRIMARY KEY (order_id, line)
);
INSERT INTO order_lines
SELECT n, line, 1 + (n * 13 + line * 31) % 500, 1 + (n + line) % 9
FROM generate_series(1, 20000) AS n, generate_series(1, 1 + n % 4) AS line;

CREATE SCHEMA audit;
CREATE TABLE audit."Log Entries" (at timestamptz NOT NULL, "what happened" text NOT NULL, size int4range);
INSERT INTO audit."Log Entries"
SELECT timestamptz '2024-06-01 00:00+00' + n * interval '1 hour', md5(n::text), int4range(n, n + n % 10 + 1)
FROM generate_series(1, 5000) AS n;
CREATE TABLE audit.empty (id integer);

CREATE FUNCTION order_total(wanted bigint) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT sum(p.price * l.quantity) FROM public.order_lines l JOIN public.products p ON p.id = l.product_id
    WHERE l.order_id = wanted
$$;
CREATE VIEW open_orders AS SELECT * FROM orders WHERE state IN ('placed', 'paid');
CREATE MATERIALIZED VIEW best_sellers AS
SELECT product_id, sum(quantity) AS sold FROM order_lines GROUP BY product_id ORDER BY sold DESC, product_id;
CREATE SEQUENCE invoice_numbers START 1000;
SELECT setval('invoice_numbers', 4711);
SELECT lo_from_bytea(424242, decode(repeat(md5('large object'), 2000), 'hex'));
