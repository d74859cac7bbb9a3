from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from jobs.pgtools import binaries
from jobs.pgtools.script.errors import ScriptFailed
from tests import sample, servers

from .conftest import Target

LOOKALIKES = r"""
CREATE TABLE "\! touch x" ("\." text, ";" text);
COMMENT ON TABLE "\! touch x" IS E'\\! touch x\n\\! touch y';
INSERT INTO "\! touch x" VALUES (E'\\.', E'\n\\.\n'), (E'\\! touch x', '\! touch x'), ('--', '/*'),
    (E'\r\\! x', E'a\n\\q\nb'), ('$$ ; \o |x', $a$'; \! touch x; '$a$), ('\', E'\\N'), (NULL, ''),
    ('"', ':x :''x''');
CREATE FUNCTION body() RETURNS text LANGUAGE sql AS $f$ SELECT '\! touch x;' -- \q
$f$;
"""
BODIES = """
CREATE FUNCTION begin() RETURNS text LANGUAGE sql BEGIN ATOMIC
    SELECT 'end;' AS "case"; SELECT CASE WHEN true THEN '; end' END; END;
CREATE PROCEDURE tidy() BEGIN ATOMIC DELETE FROM "\\! touch x"; DELETE FROM "\\! touch x" WHERE false; END;
"""


def dump(server: servers.TestServer, name: str, *options: str) -> bytes:
    toolset = binaries.install(server.major, servers.cache())
    return subprocess.run(
        [str(toolset.tool("pg_dump")), *options, f"--dbname={server.superuser_url(name)}"],
        env={"PATH": os.defpath, **toolset.environment()}, check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip


@contextmanager
def empty(server: servers.TestServer) -> Iterator[Target]:
    name = f"copy_{uuid.uuid4().hex[:8]}"
    server.create_database(name)
    yield Target(server, name)
    server.drop_database(name)


@pytest.fixture(scope="module", params=[14, 18])
def source(request: pytest.FixtureRequest) -> Iterator[Target]:
    server = servers.get(request.param)
    name = f"Source {uuid.uuid4().hex[:8]}"
    sample.make(server, name)
    with psycopg.connect(server.superuser_url(name), autocommit=True) as session:
        session.execute(LOOKALIKES + BODIES)
    yield Target(server, name)
    server.drop_database(name)


def described(target: Target) -> tuple[object, object]:
    return sample.rows(target.server, target.name), sample.definitions(target.server, target.name)


@pytest.fixture(scope="module")
def contents(source: Target) -> tuple[object, object]:
    return described(source)


@pytest.mark.parametrize(
    "options", [[], ["--inserts"], ["--create"], ["--clean", "--if-exists"]], ids=" ".join
)
def test_dumps_load_whatever_their_contents_look_like(
    source: Target, contents: tuple[object, object], options: list[str]
) -> None:
    text = dump(source.server, source.name, *options)
    assert b"\\restrict" in text
    single = "--create" not in options
    with empty(source.server) as copy:
        chunks = [text[at : at + 8192] for at in range(0, len(text), 8192)]
        done = copy.load(chunks, single_transaction=single)
        assert done.errors == 0
        assert described(copy) == contents
        if "--create" in options:
            assert copy.ask("SELECT count(*) FROM pg_db_role_setting") >= 1
            settings = "SELECT setconfig FROM pg_db_role_setting s JOIN pg_database d ON d.oid = setdatabase"
            of_copy = copy.ask(f"{settings} WHERE datname = '{copy.name}'")
            assert of_copy == source.ask(f"{settings} WHERE datname = '{source.name}'")


@pytest.mark.parametrize("source", [18], indirect=True)
def test_a_newer_dump_loads_into_an_older_server(source: Target) -> None:
    """Whose settings it sets without being known there."""
    with empty(servers.get(14)) as copy:
        text = dump(source.server, source.name, "--schema=-s", "--schema=select")
        assert b"transaction_timeout" in text
        copy.load(text)
        assert copy.ask('SELECT count(*) FROM "select"."from"') == 2


@pytest.mark.parametrize("source", [18], indirect=True)
def test_a_dump_without_its_end_is_refused(source: Target) -> None:
    text = dump(source.server, source.name, "--schema-only")
    cut = text[: text.rindex(b"--\n-- PostgreSQL database dump complete")]
    with empty(source.server) as copy:
        with pytest.raises(ScriptFailed, match="closing comment of pg_dump is missing; it is cut off"):
            copy.load(cut)
        assert copy.ask("SELECT to_regclass('events')") is None
        assert copy.load(cut, single_transaction=False, accept_errors=True).errors == 1
