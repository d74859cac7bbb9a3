"""Names change hands under those who use the database: how long they wait, and what stands in the way."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db.models.functions import Now
from psycopg import sql

from jobs.models import BackupJob, Database, QueuedJob, RestoreJob
from jobs.pgtools.conninfo import Conninfo
from jobs.processors.at_target import creation, landing, swap
from jobs.processors.at_target.lock import Hold
from jobs.processors.at_target.names import temporary
from jobs.processors.at_target.sessions import Session
from jobs.restoring import forget, undo
from jobs.restoring.keeping import drop_expired
from jobs.restoring.settling import settle_unsettled
from jobs.services import ServiceError
from tests import servers
from tests.processors.conftest import Source, in_a_thread
from tests.proxy import Proxy
from tests.restoring.clients import Clients
from tests.restoring.conftest import Restores, completed, databases, number, stray

pytestmark = pytest.mark.django_db(transaction=True)

MOST_SECONDS, MOST_FOR_UNDO = 2.0, 5.0
# 20 MB, of which nothing is written or copied in the swap.
OLD = """
CREATE TABLE orders AS SELECT -n AS n, repeat(md5(n::text), 100) AS text FROM generate_series(1, 30) AS n;
CREATE UNLOGGED TABLE ballast AS SELECT n, repeat('x', 1900) AS text FROM generate_series(1, 10000) AS n;
"""
WHICH = "SELECT min(n) FROM orders"
BEFORE, AFTER = -30, 1


@pytest.fixture
def backup(restores: Restores, shop: Source) -> BackupJob:
    return restores.backups.take(shop.url, {}, name="shop")


def oid(server: servers.TestServer, name: str) -> int:
    found: int = number(server, "postgres", f"SELECT oid FROM pg_database WHERE datname = '{name}'")
    return found


def test_a_database_in_use_is_away_for_a_moment_and_comes_back_as_quickly(
    restores: Restores, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server, OLD)
    job = restores.order(restores.at(server, name), backup, "replace", name)
    with Clients(server, name, WHICH) as clients:
        row = completed(restores.finish(job))
        clients.wait_for(AFTER)
        replaced = clients.longest_gap
        clients.forget()
        began = time.monotonic()
        undo(row, by=row.user)
        undone = time.monotonic() - began
        clients.wait_for(BEFORE)
    print(
        f"\nreplace: away for {replaced:.2f} s; undo: {undone:.2f} s, away for {clients.longest_gap:.2f} s; "
        f"clients were sent away {clients.sent_away} times"
    )
    assert max(replaced, clients.longest_gap) <= MOST_SECONDS
    assert undone <= MOST_FOR_UNDO
    assert all(seen == [BEFORE, AFTER, BEFORE] for seen in clients.answers), "never back and forth"


def test_whoever_cannot_be_sent_away_is_named_and_nobody_else_is_disturbed(
    restores: Restores, backup: BackupJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "STUBBORN_SECONDS", 1)
    server = servers.get(17)
    name = restores.target(server, OLD)
    before = oid(server, name)
    job = restores.order(restores.at(server, name), backup, "replace", name)
    with (
        psycopg.connect(server.superuser_url(name), application_name="nightly report") as stubborn,
        Clients(server, name, WHICH) as clients,
    ):
        row = restores.finish(job)
        assert stubborn.execute("SELECT 1").fetchone()
    assert row.status == "failed"
    assert "cannot be renamed" in (row.error or "")
    assert "nightly report as postgres" in (row.error or "")
    assert "The target is as it was" in (row.error or "")
    assert (oid(server, name), stray(server)) == (before, set())
    assert (row.kept_name, row.landed_oid, row.temporary_name) == (None, None, None)
    assert all(seen == [BEFORE] for seen in clients.answers)
    assert clients.sent_away == 0
    assert clients.longest_gap <= MOST_SECONDS


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """It loses the server's answer to the swap."""
    rename_all = swap._rename_all
    with Proxy(("127.0.0.1", servers.get(17).port)) as lossy:

        def unanswered(*arguments: Any) -> None:
            lossy.lose_answer(b"COMMIT")
            rename_all(*arguments)

        monkeypatch.setattr(swap, "_rename_all", unanswered)
        yield lossy


def behind(proxy: Proxy, restores: Restores, server: servers.TestServer, name: str) -> Database:
    url = server.url(name, servers.RESTORER).replace(f":{server.port}/", f":{proxy.port}/")
    return restores.backups.register(url)


def test_a_swap_whose_answer_got_lost_has_taken_place(
    restores: Restores, backup: BackupJob, proxy: Proxy
) -> None:
    server = servers.get(17)
    name = restores.target(server, OLD)
    row = completed(restores.take(behind(proxy, restores, server, name), backup, "replace", name))
    assert proxy.lost.is_set()
    assert number(server, name, WHICH) == AFTER
    assert number(server, row.kept_name or "", WHICH) == BEFORE
    assert not stray(server)


def test_what_nobody_could_tell_at_the_end_is_told_later(
    restores: Restores, backup: BackupJob, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "ASK_TIMES", 1)
    server = servers.get(17)
    name = restores.target(server, OLD)

    def cut_off() -> None:
        proxy.lost.wait(60)
        proxy.refuse()

    cut = threading.Thread(target=cut_off)
    cut.start()
    row = restores.take(behind(proxy, restores, server, name), backup, "replace", name)
    cut.join()
    assert row.status == "failed"
    assert "either the database of before or the restored one" in (row.error or "")
    in_a_thread(settle_unsettled)
    assert RestoreJob.objects.get(id=row.id).temporary_name, "nobody can tell yet"
    proxy.heal()
    in_a_thread(settle_unsettled)
    row.refresh_from_db()
    assert f'"{name}" is the restored database' in (row.error or "")
    assert QueuedJob.objects.get(id=row.id).last_error == row.error
    assert (row.temporary_name, number(server, name, WHICH)) == (None, AFTER)
    before = {"kept_name": row.kept_name, "kept_oid": row.kept_oid, "landed_oid": row.landed_oid}
    undo(row, by=row.user)
    assert number(server, name, WHICH) == BEFORE
    aside = row.kept_name
    RestoreJob.objects.filter(id=row.id).update(**before, undone_at=None)
    row.refresh_from_db()
    undo(row, by=row.user)
    assert (row.kept_name, number(server, name, WHICH)) == (aside, BEFORE), "it had been done"


def test_a_temporary_database_left_by_a_job_that_is_over_is_dropped(
    restores: Restores, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server, OLD)
    row = completed(restores.take(restores.at(server, name), backup, "replace", name))
    left = temporary(row.id, uuid.uuid4())
    server.create_database(left, servers.RESTORER)
    RestoreJob.objects.filter(id=row.id).update(temporary_name=left, kept_name=None)
    row.refresh_from_db()
    with pytest.raises(ServiceError, match="may have left"):
        forget(row, by=row.user)
    in_a_thread(settle_unsettled)
    assert left not in databases(server)
    assert RestoreJob.objects.get(id=row.id).temporary_name is None


def test_a_kept_database_goes_when_its_time_is_over_but_not_another_of_its_name(
    restores: Restores, backup: BackupJob
) -> None:
    server = servers.get(17)
    rows = []
    for _ in range(2):
        name = restores.target(server, "CREATE TABLE orders (n int)")
        rows.append(completed(restores.take(restores.at(server, name), backup, "replace", name)))
    expired, swapped = rows
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    kept, aside = swapped.kept_name or "", f"{swapped.kept_name}_mine"
    server.execute(rename.format(sql.Identifier(kept), sql.Identifier(aside)))
    server.create_database(kept)
    in_a_thread(drop_expired)
    assert {expired.kept_name, kept, aside} <= databases(server)
    RestoreJob.objects.update(kept_until=Now())
    in_a_thread(drop_expired)
    assert {expired.kept_name, kept, aside} & databases(server) == {kept, aside}
    for row in rows:
        row.refresh_from_db()
    assert (expired.kept_name, expired.kept_oid, expired.kept_until) == (None, None, None)
    assert swapped.kept_name == kept


def test_nobody_gets_a_database_that_could_not_be_dropped_from_them_again() -> None:
    server, token = servers.get(17), uuid.uuid4().hex[:8]
    owner, login, name = f"owner {token}", f"login {token}", f"lent {token}"
    with psycopg.connect(server.superuser_url(), autocommit=True) as root:
        root.execute(f'CREATE ROLE "{owner}"')
        root.execute(f"""CREATE ROLE "{login}" LOGIN CREATEDB PASSWORD 'secret'""")
        root.execute(f'GRANT "{owner}" TO "{login}" WITH INHERIT FALSE, SET TRUE')
        try:
            with psycopg.connect(server.url("postgres", login, "secret"), autocommit=True) as session:
                (told,) = creation.create(session, name, creation.Properties(), owner)
                assert "does not inherit" in told
                creation.drop(session, name)
            assert name not in databases(server)
        finally:
            server.drop_database(name)
            root.execute(f'DROP ROLE "{login}", "{owner}"')


def test_whoever_has_lost_the_lock_sends_nobody_away_and_runs_nothing(restores: Restores) -> None:
    server = servers.get(17)
    name = restores.target(server)
    with (
        psycopg.connect(server.superuser_url(), autocommit=True) as root,
        psycopg.connect(server.superuser_url(), autocommit=True) as holder,
        psycopg.connect(server.url(name), autocommit=True) as client,
    ):
        root.execute("SELECT pg_terminate_backend(%s, 5000)", [holder.info.backend_pid])

        def another() -> Session:
            return psycopg.connect(server.superuser_url(), autocommit=True)

        with pytest.raises(psycopg.OperationalError):
            swap.swap(holder, [swap.Rename(name, f"{name} moved", oid(server, name))], another)
        assert client.execute("SELECT 1").fetchone()
    hold = Hold(Conninfo.parse(server.url(name)), name, Path(), uuid.uuid4())
    hold.lost = True
    killed: list[bool] = []
    with hold.killing(lambda: killed.append(True)):
        assert killed
