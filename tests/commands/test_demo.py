from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from psycopg import sql

from jobs.management.demo import compare, sample
from jobs.models import BackupJob, Database, RestoreJob
from pgbr import embedded
from tests.commands.conftest import Call
from tests.environment import STATE


@pytest.mark.django_db(transaction=True)
def test_demo_backs_up_restores_and_compares(manage: Call, own_server: None) -> None:
    said = manage("demo")

    assert said.code == 0, said
    backup = BackupJob.objects.get()
    assert f"backup    {backup.id}" in said.out
    assert f"size      {backup.size} bytes" in said.out
    assert f"sha256    {backup.sha256}" in said.out
    assert "public.order_lines           50,000        50,000  same" in said.out
    assert "DIFFERENT" not in said.out
    assert backup.user.username == "demo"
    assert not backup.user.is_active

    assert RestoreJob.objects.get().status == "completed"

    again = manage("demo")
    assert again.code == 0, again
    assert Database.objects.count() == 1
    assert sorted(RestoreJob.objects.values_list("mode", "kept_name")) == [("new", None), ("replace", None)]
    assert databases_of_the_demo() == [sample.SOURCE, sample.COPY]


@pytest.fixture
def own_server() -> Iterator[None]:
    """The demo as a process of its own has a server of its own too."""
    yield
    embedded.stop(STATE)


def databases_of_the_demo() -> list[str]:
    """What it leaves on the server: neither a replaced copy nor an unfinished one."""
    with sample.connect(embedded.superuser(STATE)) as session:
        query = "SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) = %s ORDER BY datname"
        return [str(name) for (name,) in session.execute(query, [sample.ROLE]).fetchall()]


@contextmanager
def copy_of(role: str) -> Iterator[sample.Server]:
    """The demo's server, with an empty database in the place of the copy."""
    with sample.prepared(settings.PGBR_HOME) as server:
        pass
    name = sql.Identifier(sample.COPY)
    with sample.connect(server.superuser) as session:
        session.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(name))
        session.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, sql.Identifier(role)))
    try:
        yield server
    finally:
        with sample.connect(server.superuser) as session:
            session.execute(sql.SQL("DROP DATABASE {}").format(name))


def test_a_copy_that_differs_is_noticed(db: None) -> None:
    with copy_of(sample.ROLE) as server:
        ours, theirs = (sample.connect(server.of_role(name)) for name in (sample.COPY, sample.COPY))
        with ours, theirs:
            ours.execute("CREATE TABLE t AS SELECT generate_series(1, 3) AS n")
            assert all(line.same for line in compare.tables(ours, theirs))
            with sample.connect(server.of_role(sample.SOURCE)) as source:
                (line,) = [line for line in compare.tables(ours, source) if line.name == "public.t"]
                assert (line.source_rows, line.copy_rows, line.same) == (3, -1, False)
                assert compare.definitions(ours, source)["indexes"][1] is False


def test_a_database_of_somebody_else_is_left_alone(db: None) -> None:
    with (
        copy_of("pgbr") as server,
        pytest.raises(sample.DemoFailed, match="belongs to pgbr"),
        sample.prepared(settings.PGBR_HOME),
    ):
        pass
    assert not sample.is_there(server, sample.COPY)
