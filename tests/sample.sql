CREATE EXTENSION pgcrypto;
CREATE SCHEMA tools;
CREATE EXTENSION citext SCHEMA tools;
COMMENT ON SCHEMA tools IS E'a comment; with ''quotes''\nand a second line';
ALTER DEFAULT PRIVILEGES IN SCHEMA tools GRANT SELECT ON TABLES TO "sample reader";

CREATE TYPE mood AS ENUM ('sad', 'so so', 'glad');
CREATE DOMAIN percent AS numeric(5, 2) CHECK (VALUE BETWEEN 0 AND 100);
CREATE TYPE point3 AS (x float8, y float8, z float8);
CREATE TABLE kinds (
    id int GENERATED ALWAYS AS IDENTITY (START 100) PRIMARY KEY,
    small smallint, big bigint, money numeric(20, 4), ratio float8, flag boolean, word varchar(20),
    fixed char(5), long text, raw bytea, day date, at timestamptz, span interval, address inet,
    doc jsonb, old_doc json, tags text[], grid int[][], during tstzrange, bits bit varying(12), key uuid,
    search tsvector, place point3, feeling mood, share percent, mail tools.citext, markup xml, nothing text
);
INSERT INTO kinds (small, big, money, ratio, flag, word, fixed, long, raw, day, at, span, address, doc, old_doc,
    tags, grid, during, bits, key, search, place, feeling, share, mail, markup)
SELECT n, n * 10000000000, n / 7.0, n / 3.0, n % 2 = 0, 'word ' || n, 'ab', repeat('lang ö ', n), decode('00ff0a5c', 'hex'),
    date '2024-02-29' + n, timestamptz '2026-03-29 00:30:00.123456+00' + n * interval '1 hour', n * interval '1 day 2 s',
    '2001:db8::1', jsonb_build_object('n', n, 'text', E'tab\t"\\'), '{"a":  1, "a": 2}', ARRAY['a,b', '{', NULL, 'é'],
    ARRAY[[1, 2], [3, n]], tstzrange('2026-01-01', NULL), B'1010', md5(n::text)::uuid, to_tsvector('english', 'running dogs'),
    ROW(1.5, 'NaN'::float8, 'Infinity'::float8)::point3, 'so so', n, 'Ada@Example.org', '<a b="c">&amp;</a>'
FROM generate_series(1, 40) AS n;
INSERT INTO kinds DEFAULT VALUES;

CREATE TABLE "Order; DROP TABLE kinds" ("Id" serial PRIMARY KEY, "select" int, "näme ""x""" text DEFAULT 'a''b\',
    net numeric, gross numeric GENERATED ALWAYS AS (net * 1.19) STORED,
    kind int REFERENCES kinds (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED, CHECK ("select" > 0));
CREATE UNIQUE INDEX "index on ""Order""" ON "Order; DROP TABLE kinds" (("select" + 1)) WHERE net > 3;
INSERT INTO "Order; DROP TABLE kinds" ("select", net, kind) SELECT n, n * 1.5, 100 + n % 20 FROM generate_series(1, 60) AS n;
CREATE SCHEMA "select";
CREATE TABLE "select"."from" (a int, b int, PRIMARY KEY (a, b));
INSERT INTO "select"."from" VALUES (1, 2), (2, 3);
CREATE SCHEMA "-s";
CREATE TABLE "-s"."--help" (id bigserial, "日本語" text COLLATE "C" UNIQUE);
INSERT INTO "-s"."--help" ("日本語") VALUES ('東京'), (''), (NULL), (E'\\.'), (E'line\nbreak\ttab');
CREATE TABLE "tab.le	with tab" (id int);
CREATE TABLE empty ();
CREATE UNLOGGED TABLE cache AS SELECT 1 AS hit;

CREATE TABLE events (at date NOT NULL, region text, n int) PARTITION BY RANGE (at);
CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') PARTITION BY LIST (region);
CREATE TABLE events_2026_eu PARTITION OF events_2026 FOR VALUES IN ('eu');
CREATE TABLE events_rest PARTITION OF events DEFAULT;
CREATE INDEX ON events (n);
INSERT INTO events SELECT date '2025-06-01' + n, 'eu', n FROM generate_series(0, 400, 7) AS n;
INSERT INTO events VALUES ('1999-12-31', NULL, -1);

CREATE SEQUENCE "Odd seq" INCREMENT -5 MINVALUE -1000 MAXVALUE -1 CACHE 3 CYCLE;
SELECT nextval('"Odd seq"'), setval('"-s"."--help_id_seq"', 4711, false);
SELECT lo_from_bytea(4242, decode(repeat('00ff', 5000), 'hex'));
SELECT lo_from_bytea(4243, '');
COMMENT ON LARGE OBJECT 4242 IS 'a large one';
GRANT SELECT ON LARGE OBJECT 4242 TO "sample reader";

CREATE FUNCTION "-s".touch() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN NEW.n := COALESCE(NEW.n, 0) + 1; RETURN NEW; END $body$;
CREATE PROCEDURE tools.tidy(INOUT n int) LANGUAGE sql AS 'SELECT n + 1';
CREATE AGGREGATE tools.total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE TRIGGER touched BEFORE UPDATE ON events FOR EACH ROW WHEN (NEW.n > 0) EXECUTE FUNCTION "-s".touch();
CREATE VIEW public."A view" WITH (security_barrier) AS SELECT k.id, k.feeling FROM kinds k WHERE k.flag WITH CHECK OPTION;
CREATE MATERIALIZED VIEW counted AS SELECT region, count(*) AS n FROM events GROUP BY region;
CREATE UNIQUE INDEX ON counted (region);
CREATE RULE quiet AS ON DELETE TO "select"."from" DO INSTEAD NOTHING;
CREATE STATISTICS s1 (dependencies) ON small, big FROM kinds;
CREATE PUBLICATION news FOR TABLE events, kinds WITH (publish = 'insert');

CREATE TABLE secrets (owner name DEFAULT current_user, text text);
INSERT INTO secrets VALUES ('app', 'mine'), ('postgres', 'not mine');
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secrets FOR SELECT TO "sample reader" USING (owner = current_user);

COMMENT ON TABLE kinds IS 'All kinds; of ''things''';
COMMENT ON COLUMN kinds.nothing IS '-- DROP';
GRANT USAGE ON SCHEMA "-s", tools TO "sample reader";
GRANT SELECT, INSERT (region) ON events TO "sample reader" WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION "-s".touch() TO PUBLIC;
REVOKE ALL ON counted FROM PUBLIC;
