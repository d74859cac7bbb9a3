"""A database to load scripts into, emptied before each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from jobs.pgtools.script.loader import Loader, ScriptResult
from tests import servers


@dataclass(frozen=True)
class Target:
    server: servers.TestServer
    name: str

    def connect(self, user: str = servers.APP) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.url(self.name, user), autocommit=True)

    def run(self, statements: str) -> None:
        with self.connect(servers.SUPERUSER) as session:
            session.execute(statements)

    def ask(self, question: str) -> Any:
        with self.connect(servers.SUPERUSER) as session:
            row = session.execute(question).fetchone()
            return row[0] if row and len(row) == 1 else row

    def load(
        self,
        script: str | bytes | Iterable[bytes],
        *,
        connection: psycopg.Connection[Any] | None = None,
        before_commit: Any = lambda: None,
        **options: Any,
    ) -> ScriptResult:
        """In a single transaction and without accepting errors, unless told otherwise.

        A `connection` that is given stays open.
        """
        if isinstance(script, str | bytes):
            script = [script.encode() if isinstance(script, str) else script]
        defaults: dict[str, Any] = {
            "target_name": self.name,
            "single_transaction": True,
            "accept_errors": False,
            "on_progress": lambda _line, _words: None,
            "stop": lambda: False,
        }
        with nullcontext(connection) if connection else self.connect(servers.SUPERUSER) as session:
            return Loader(session, **{**defaults, **options}).run(script, before_commit)


@pytest.fixture(scope="module")
def module_target() -> Iterator[Target]:
    server = servers.get(17)
    name = f"script_{uuid.uuid4().hex[:8]}"
    server.create_database(name)
    yield Target(server, name)
    server.drop_database(name)


@pytest.fixture
def target(module_target: Target) -> Target:
    module_target.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION app")
    return module_target
