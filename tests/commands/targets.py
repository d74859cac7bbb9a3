"""Databases that commands restore into, and a dump to restore."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User

from jobs.models import Database
from jobs.pgtools import process
from jobs.pgtools.conninfo import Conninfo
from jobs.secrets import seal
from tests import servers
from tests.processors.restoring import toolset
from tests.servers import RESTORER, TestServer

DDL = "CREATE TABLE orders (n int PRIMARY KEY); INSERT INTO orders SELECT generate_series(1, 50)"


@dataclass(frozen=True)
class Target:
    """A registered database; `name` as its server knows it. Its login may create databases."""

    server: TestServer
    name: str
    row: Database

    def number(self, query: str, name: str = "") -> Any:
        with psycopg.connect(self.server.superuser_url(name or self.name)) as session:
            row = session.execute(query.encode()).fetchone()
        return row[0] if row else None

    def run(self, statement: str) -> None:
        with psycopg.connect(self.server.url(self.name, RESTORER), autocommit=True) as session:
            session.execute(statement.encode())

    def databases(self) -> list[str]:
        """Of this name or one derived from it, and those that are being restored."""
        with psycopg.connect(self.server.superuser_url()) as session:
            query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s) ORDER BY datname"
            return [name for (name,) in session.execute(query, [self.name]).fetchall()]


MakeTarget = Callable[..., Target]


@pytest.fixture
def make_target(superuser: User) -> Iterator[MakeTarget]:
    """`make_target("shop", statements="…")`: registered for the only superuser."""
    made: list[Target] = []

    def make(registered: str, statements: str = "", **columns: Any) -> Target:
        server, name = servers.get(17), f"{registered} {uuid.uuid4().hex[:8]}"
        server.create_database(name, RESTORER)
        url = server.url(name, RESTORER)
        row = Database.objects.create(user=superuser, name=registered, sealed_url=seal(url), **columns)
        made.append(Target(server, name, row))
        if statements:
            made[-1].run(statements)
        return made[-1]

    yield make
    for target in made:
        for name in target.databases():
            target.server.drop_database(name)


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A custom archive of DDL."""
    server, name = servers.get(17), f"dumped {uuid.uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp("dump")
    with psycopg.connect(server.create_database(name, RESTORER), autocommit=True) as session:
        session.execute(DDL.encode())
    tools, conninfo = toolset(17), Conninfo.parse(server.url(name, RESTORER))
    path = folder / "shop.dump"
    argv = [str(tools.tool("pg_dump")), "--format=custom", f"--file={path}"]
    environment = conninfo.environment(folder, "tests") | tools.environment()
    with process.spawn(argv, environment, cwd=folder, stdout=False) as child:
        child.check()
    server.drop_database(name)
    return path


class Terminal(io.StringIO):
    """Standard input at which somebody sits and types."""

    def isatty(self) -> bool:
        return True
