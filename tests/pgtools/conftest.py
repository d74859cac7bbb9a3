"""Databases to ask and dump, on real servers, and a way to run a tool against them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jobs.pgtools import binaries, process
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.toolset import Toolset
from tests import servers

SHOP = """
CREATE TABLE orders (id serial PRIMARY KEY, note text);
INSERT INTO orders (note) SELECT repeat('x', 200) FROM generate_series(1, 500);
CREATE TABLE customers (id int PRIMARY KEY, name text);
INSERT INTO customers VALUES (1, 'Ada');
CREATE UNLOGGED TABLE cache (id int);
CREATE VIEW named AS SELECT name FROM customers;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM orders;
CREATE TABLE events (at date) PARTITION BY RANGE (at);
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE SCHEMA "Old Stuff";
CREATE TABLE "Old Stuff"."Table.1" (id int);
CREATE SCHEMA audit;
CREATE TABLE audit.orders (id int);
SELECT lo_from_bytea(0, 'large');
"""


@dataclass(frozen=True)
class Place:
    """A database, how to reach it, the tools of its server's major and a scratch folder."""

    server: servers.TestServer
    name: str
    url: str
    conninfo: Conninfo
    toolset: Toolset
    folder: Path

    def connect(self) -> psycopg.Connection[Any]:
        return self.conninfo.connect(self.folder, "pgbr/test")

    def as_user(self, user: str, password: str | None = None) -> Conninfo:
        return Conninfo.parse(self.server.url(self.name, user, password))

    def dump(self, flags: Mapping[str, Any], conninfo: Conninfo | None = None) -> tuple[bytes, str]:
        """Run pg_dump; what it wrote to stdout and its log. Raises ToolFailed."""
        parsed = DumpFlags.from_dict(flags)
        directory = self.folder / f"d-{uuid.uuid4().hex}" if parsed.format == "directory" else None
        return self.run(parsed.argv(self.toolset, directory), conninfo)

    def run(self, argv: list[str], conninfo: Conninfo | None = None) -> tuple[bytes, str]:
        conninfo = conninfo or self.conninfo
        env = conninfo.environment(self.folder, "pgbr/test") | self.toolset.environment()
        with process.spawn(argv, env, cwd=self.folder, secrets=conninfo.secrets) as child:
            written = b"".join(iter(lambda: child.stdout.read(1 << 20), b""))
            child.check()
            return written, child.log


def toolset(major: int) -> Toolset:
    return binaries.install(major, servers.cache())


MakePlace = Callable[..., Place]


@pytest.fixture(scope="module")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakePlace]:
    made: list[Place] = []

    def make(major: int, script: str = SHOP) -> Place:
        server = servers.get(major)
        name = f"shop_{uuid.uuid4().hex[:8]}"
        url = server.create_database(name)
        folder = tmp_path_factory.mktemp("scratch")
        place = Place(server, name, url, Conninfo.parse(url), toolset(major), folder)
        made.append(place)
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(script)
        return place

    yield make
    for place in made:
        place.server.drop_database(place.name)


@pytest.fixture(scope="module")
def shop(make_place: MakePlace) -> Place:
    """The sample database on one server; tests leave it as it is."""
    return make_place(17)
