from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest

from pgbr import embedded

from .conftest import ENSURE, connect, has_row, kill, leave_row, output_of, python, server_pid, wait_until


def test_first_call_makes_a_database_of_our_own_and_the_next_one_is_quick(new_home: Path) -> None:
    assert embedded.connection(new_home) is None
    first = embedded.ensure(new_home)
    assert embedded.connection(new_home) == first
    leave_row(first)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        assert embedded.ensure(new_home) == first
        times.append(time.perf_counter() - began)
    assert min(times) < 0.05


def test_six_processes_at_once_share_one_server(new_home: Path) -> None:
    processes = [python(ENSURE, new_home) for _ in range(6)]
    ports = {output_of(process) for process in processes}
    known = embedded.connection(new_home)
    assert known is not None
    assert ports == {str(known.port)}


def test_application_role_may_create_databases_and_is_no_superuser(home: Path) -> None:
    with connect(embedded.ensure(home)) as conn:
        conn.autocommit = True
        rights = "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        assert conn.execute(rights).fetchone() == (False, True, False)
        owner = conn.execute(
            "SELECT datdba::regrole::text FROM pg_database WHERE datname = 'pgbr'"
        ).fetchone()
        assert owner == ("pgbr",)
        conn.execute("CREATE DATABASE other")


def test_other_roles_cannot_connect_to_the_applications_database(home: Path) -> None:
    known = embedded.ensure(home)
    with connect(embedded.superuser(home)) as conn:
        conn.execute("CREATE ROLE sample LOGIN PASSWORD 'sample'")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        connect(known, user="sample", password="sample")


def test_data_are_synced_to_disk_and_checked(new_home: Path) -> None:
    wanted = {"fsync": "on", "data_checksums": "on", "TimeZone": "UTC", "server_encoding": "UTF8"}
    with connect(embedded.ensure(new_home)) as conn:
        found = {name: (conn.execute(f"SHOW {name}").fetchone() or ("",))[0] for name in wanted}
    assert found == wanted


def test_stop_and_start_keep_data_and_port(home: Path) -> None:
    first = embedded.ensure(home)
    leave_row(first)
    assert embedded.status(home).running
    embedded.stop(home)
    embedded.stop(home)
    stopped = embedded.status(home)
    assert (stopped.running, stopped.pid, stopped.major) == (False, None, 17)
    assert embedded.ensure(home) == first
    assert has_row(first)


def test_lost_record_and_lost_superuser_password_are_made_again(home: Path) -> None:
    first = embedded.ensure(home)
    leave_row(first)
    (home / "embedded" / "connection.json").write_text("{")
    second = embedded.ensure(home)
    assert second.password != first.password
    assert has_row(second)
    embedded.stop(home)
    (home / "embedded" / "superuser").unlink()
    assert has_row(embedded.ensure(home))
    with connect(embedded.superuser(home)) as conn:
        assert conn.execute("SELECT current_user").fetchone() == ("postgres",)


@pytest.mark.parametrize("name", ["it's a home, with spaces", "long/" + "x" * 120])
def test_homes_with_awkward_and_long_paths(place: Path, name: str) -> None:
    known = embedded.ensure(place / name)
    assert len(f"{known.host}/.s.PGSQL.{known.port}") <= 107
    leave_row(known)
    embedded.stop(place / name)
    assert has_row(embedded.ensure(place / name))


def test_folder_with_strange_content_is_left_alone(new_home: Path) -> None:
    data = new_home / "embedded" / "data"
    data.mkdir(parents=True)
    (data / "precious").write_text("mine")
    with pytest.raises(embedded.ClusterError, match="not empty"):
        embedded.ensure(new_home)
    assert [path.name for path in data.iterdir()] == ["precious"]


def test_server_outlives_its_starter_and_holds_nothing_of_it(home: Path) -> None:
    starter = python(ENSURE, home)
    output_of(starter)  # ends only when no process holds the pipes any more
    assert embedded.status(home).running
    descriptors = Path(f"/proc/{server_pid(home)}/fd")
    held = {str(entry.readlink()) for entry in descriptors.iterdir()}
    assert not [target for target in held if target.endswith(("/lock", "connection.json"))]


def test_answer_waits_until_a_recovering_server_takes_connections(home: Path) -> None:
    known = embedded.ensure(home)
    with connect(known) as victim, connect(known) as witness:
        kill(victim.info.backend_pid)
        wait_until(lambda: conn_is_broken(witness))  # the server ends all others and recovers
        assert embedded.ensure(home) == known
        with connect(known) as fresh:
            assert fresh.execute("SELECT 1").fetchone() == (1,)
        for broken in (victim, witness):
            broken.close()


def conn_is_broken(conn: psycopg.Connection[tuple[object, ...]]) -> bool:
    try:
        conn.execute("SELECT 1")
    except psycopg.Error:
        return True
    return False
