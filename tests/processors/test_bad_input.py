"""What cannot work fails with a message to act on, leaves nothing and stops nobody: the database."""

from __future__ import annotations

import socket

import psycopg
import pytest
from pytest_django.fixtures import Settings

from jobs.models import Database
from tests import servers
from tests.pgtools.fakepooler import FakePooler

from .conftest import Backups, Fail, MakeSource, Source
from .restoring import toolset


def test_a_database_dropped_meanwhile(backups: Backups, fails: Fail) -> None:
    database = backups.register(servers.get(17).url("gone for good"))
    fails(
        backups.order(database), 'database "gone for good" does not exist', "dropped or renamed", "127.0.0.1:"
    )


def test_a_database_no_longer_registered(backups: Backups, shop: Source, fails: Fail) -> None:
    database = backups.register(shop.url, "books")
    job_id = backups.order(database)
    Database.objects.filter(id=database.id).delete()
    row = fails(job_id, "'books' is not registered any more", "Add it again")
    assert (row.database_name, row.database_id) == ("books", None)


def test_a_host_that_does_not_answer(backups: Backups, fails: Fail) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        database = backups.register(f"postgresql://app:x@127.0.0.1:{port}/shop")
        fails(
            backups.order(database),
            f"127.0.0.1:{port}",
            'database "shop"',
            "Connection refused",
            "does it listen",
        )


def test_a_host_that_does_not_exist(backups: Backups, fails: Fail) -> None:
    database = backups.register("postgresql://app:x@no-such-host.invalid/shop")
    fails(backups.order(database), "no-such-host.invalid:5432", "Check the host's name")


def test_a_wrong_password(backups: Backups, shop: Source, fails: Fail) -> None:
    database = backups.register(shop.server.url(shop.name, password="wr0ng:s3cret"))
    row = fails(
        backups.order(database), "password authentication failed", 'as "app"', "Check user and password"
    )
    assert "s3cret" not in f"{row.error}{row.log}"


def test_a_server_newer_than_every_client(
    backups: Backups,
    make_source: MakeSource,
    fails: Fail,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = make_source(18)
    old = [toolset(14), toolset(16)]
    monkeypatch.setattr("jobs.processors.source.toolsets", lambda: old)
    job_id = backups.order(backups.register(source.url))
    fails(job_id, "PostgreSQL 18", "client tools found: 14, 16", "pgtools install 18", "PGBR_PG_BIN")
    monkeypatch.undo()


def test_no_client_tools_at_all(
    backups: Backups, shop: Source, fails: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.processors.source.toolsets", list)
    fails(backups.order(backups.register(shop.url)), "client tools found: none", "pgtools install 17")
    monkeypatch.undo()


def test_a_pooler_in_between(backups: Backups, shop: Source, fails: Fail) -> None:
    with FakePooler(shop.url, 1, "transaction") as pooler:
        url = shop.url.replace(f":{shop.server.port}/", f":{pooler.port}/") + "?sslmode=disable"
        fails(
            backups.order(backups.register(url)), "goes through a pooler", "Register the server's own address"
        )


def test_a_table_that_the_login_may_not_read(backups: Backups, make_source: MakeSource, fails: Fail) -> None:
    source = make_source(17)
    with psycopg.connect(source.server.superuser_url(source.name), autocommit=True) as session:
        session.execute("CREATE TABLE hidden (n int)")
    fails(
        backups.order(backups.register(source.url)),
        "permission denied for table hidden",
        "Grant the role USAGE and SELECT",
    )


def test_rows_that_row_security_hides(backups: Backups, make_source: MakeSource, fails: Fail) -> None:
    source = make_source(17)
    with psycopg.connect(source.server.superuser_url(source.name), autocommit=True) as session:
        session.execute("CREATE TABLE hidden (n int); GRANT ALL ON hidden TO app")
        session.execute("ALTER TABLE hidden ENABLE ROW LEVEL SECURITY")
    fails(backups.order(backups.register(source.url)), "row-level security", '"hidden"', "BYPASSRLS")


def test_a_locked_table_ends_the_wait(backups: Backups, make_source: MakeSource, fails: Fail) -> None:
    source = make_source(17, "CREATE TABLE busy (n int)")
    with psycopg.connect(source.url) as session:
        session.execute("LOCK TABLE busy")
        fails(
            backups.order(backups.register(source.url), {"lock_wait_timeout": 1}),
            "public.busy",
            "Another session locks a table",
        )


def test_a_dump_that_takes_too_long(backups: Backups, make_source: MakeSource, fails: Fail) -> None:
    source = make_source(17, "CREATE TABLE busy (n int)")
    with psycopg.connect(source.url) as session:
        session.execute("LOCK TABLE busy")
        database = backups.register(source.url, max_duration=1)
        row = fails(
            backups.order(database, {"lock_wait_timeout": 0}),
            "longer than the 1 s",
            "Raise its longest duration",
        )
    assert row.log


def test_a_server_that_dies_in_mid_dump(backups: Backups, fails: Fail) -> None:
    server = servers.private(16)
    try:
        url = server.create_database("frail")
        with psycopg.connect(url) as session:
            session.execute("CREATE TABLE busy (n int)")
        holder = psycopg.connect(url)
        holder.execute("LOCK TABLE busy")
        job_id = backups.order(backups.register(url), {"lock_wait_timeout": 0})
        thread = backups.start()
        backups.until_dumping(job_id)
        server.stop("immediate")
        thread.join(60)
        fails(job_id, "server closed the connection")
    finally:
        servers.discard(server)


def test_patterns_that_match_nothing(backups: Backups, shop: Source, fails: Fail) -> None:
    flags = {"tables": ["orders", "public.Odrers"]}
    fails(
        backups.order(backups.register(shop.url), flags),
        "nothing matches tables 'public.Odrers'",
        "double quotes",
    )


def test_an_exclusion_that_matches_nothing_is_a_warning(backups: Backups, shop: Source) -> None:
    row = backups.take(shop.url, {"exclude_tables": ["odrers"]})
    assert "exclude_tables 'odrers' matches nothing, so it left nothing out." in row.warnings


def test_a_codec_that_the_tools_of_an_old_server_lack(
    backups: Backups, make_source: MakeSource, fails: Fail
) -> None:
    database = backups.register(make_source(14).url)
    fails(backups.order(database, {"compress": "zstd:3"}), "pg_dump 14.", "has no zstd; choose gzip")
