from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pgbr import embedded
from pgbr.accounts import server_account
from pgbr.embedded import Connection

from .conftest import (
    ENSURE,
    alive,
    connect,
    end_server,
    has_row,
    kill,
    leave_row,
    output_of,
    python,
    server_pid,
    state,
    wait_until,
    working_in,
)


@pytest.fixture
def crashed(home: Path) -> Connection:
    """A server that a power cut ended: its lock files are still there."""
    known = embedded.ensure(home)
    leave_row(known)
    end_server(home / "embedded" / "data")
    assert (home / "embedded" / "data" / "postmaster.pid").exists()
    return known


@pytest.fixture
def stranger() -> Iterator[int]:
    """The pid of a live process of the server's own account that is no PostgreSQL."""
    account = server_account()
    ids = {"user": account.uid, "group": account.gid, "extra_groups": [account.gid]} if account else {}
    process = subprocess.Popen(["/bin/sleep", "600"], cwd="/", **ids)  # type: ignore[call-overload]
    yield process.pid
    process.kill()
    process.wait()


def put_pid(lock: Path, pid: int) -> None:
    lines = lock.read_text().splitlines()
    owner = lock.stat()
    lock.write_text("\n".join([str(pid), *lines[1:]]) + "\n")
    os.chown(lock, owner.st_uid, owner.st_gid)


def test_killed_postmaster_is_replaced_within_seconds(home: Path) -> None:
    known = embedded.ensure(home)
    leave_row(known)
    kill(server_pid(home))
    began = time.monotonic()
    assert embedded.ensure(home) == known
    assert time.monotonic() - began < 10
    assert has_row(known)


def test_power_cut_is_recovered_from(home: Path, crashed: Connection) -> None:
    assert not embedded.status(home).running
    assert embedded.ensure(home) == crashed
    assert has_row(crashed)


def test_reused_pid_in_the_lock_files_does_not_keep_the_server_out(
    home: Path, crashed: Connection, stranger: int
) -> None:
    put_pid(home / "embedded" / "data" / "postmaster.pid", stranger)
    put_pid(Path(crashed.host) / f".s.PGSQL.{crashed.port}.lock", stranger)
    assert embedded.status(home).pid is None
    assert embedded.ensure(home) == crashed
    assert has_row(crashed)
    assert alive(stranger)


def test_stopping_a_dead_server_spares_the_stranger_with_its_pid(
    home: Path, crashed: Connection, stranger: int
) -> None:
    put_pid(home / "embedded" / "data" / "postmaster.pid", stranger)
    embedded.stop(home)
    assert alive(stranger)
    assert embedded.ensure(home) == crashed


def test_unreadable_lock_file_is_survived(home: Path, crashed: Connection) -> None:
    (home / "embedded" / "data" / "postmaster.pid").unlink()
    assert embedded.ensure(home) == crashed
    assert has_row(crashed)


def test_orphaned_backend_that_does_not_react_is_ended(home: Path) -> None:
    known = embedded.ensure(home)
    leave_row(known)
    conn = connect(known)
    orphan = conn.info.backend_pid
    kill(orphan, signal.SIGSTOP)
    wait_until(lambda: state(orphan) == "T")
    kill(server_pid(home))
    wait_until(lambda: not alive(server_pid(home)))
    assert embedded.ensure(home) == known
    assert not alive(orphan)
    assert has_row(known)
    conn.close()


ZOMBIE = """
import ctypes, os, pathlib, signal, sys, time
from pgbr import embedded, postmaster
home = pathlib.Path(sys.argv[1])
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # orphans become ours, as for PID 1 of a container
embedded.ensure(home)
pid = postmaster.read_pid_file(home / "embedded" / "data").pid
os.kill(pid, signal.SIGKILL)
while pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
    time.sleep(0.01)
assert embedded.status(home).pid is None
embedded.ensure(home)
print(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
"""


def test_zombie_postmaster_nobody_waits_for_does_not_keep_the_server_out(home: Path) -> None:
    assert output_of(python(ZOMBIE, home)) == "Z"
    assert embedded.status(home).running


STAGES: dict[str, Callable[[Path], bool]] = {
    "before initdb is done": lambda folder: any(folder.glob("data.init-*/data/base")),
    "when the data directory has its name": lambda folder: (folder / "data").exists(),
    "while the server starts": lambda folder: (folder / "data" / "postmaster.pid").exists(),
    "before the connection is written down": lambda folder: any(folder.glob("run/.s.PGSQL.*")),
}


@pytest.mark.parametrize("stage", STAGES)
def test_first_start_that_is_killed_is_taken_up_by_the_next(new_home: Path, stage: str) -> None:
    first = python(ENSURE, new_home)
    wait_until(lambda: STAGES[stage](new_home / "embedded"))
    kill(first.pid)
    first.communicate()
    leave_row(embedded.ensure(new_home))
    assert not list((new_home / "embedded").glob("data.init-*"))


def test_initialised_data_survive_kills_at_any_moment_of_later_starts(home: Path) -> None:
    known = embedded.ensure(home)
    leave_row(known)
    for _ in range(3):
        end_server(home / "embedded" / "data")
        starter = python(ENSURE, home)
        wait_until(lambda: bool(working_in(home / "embedded" / "data")))
        kill(starter.pid)
        starter.communicate()
    assert has_row(embedded.ensure(home))


def test_taken_port_is_given_up_for_another(home: Path, crashed: Connection) -> None:
    with ExitStack() as stack:
        taken = stack.enter_context(socket.socket())
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", crashed.port))
        taken.listen()
        moved = embedded.ensure(home)
        assert moved.port != crashed.port
        assert has_row(moved)
        assert embedded.connection(home) == moved


def test_two_servers_of_one_account_do_not_end_each_other(place: Path) -> None:
    one, two = embedded.ensure(place / "one"), embedded.ensure(place / "two")
    with connect(one) as conn:
        end_server(place / "two" / "embedded" / "data")
        assert embedded.ensure(place / "two") == two
        embedded.stop(place / "two")
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_data_of_a_major_nobody_has_are_not_touched(home: Path) -> None:
    embedded.ensure(home)
    embedded.stop(home)
    data = home / "embedded" / "data"
    version = data / "PG_VERSION"
    version.write_text("12\n")
    before = {path: path.lstat().st_mtime_ns for path in data.rglob("*")}
    with pytest.raises(embedded.ClusterError, match=r"PostgreSQL 12.*not touched"):
        embedded.ensure(home)
    assert {path: path.lstat().st_mtime_ns for path in data.rglob("*")} == before


def test_no_process_is_left_after_stop(home: Path) -> None:
    embedded.ensure(home)
    embedded.stop(home)
    assert working_in(home / "embedded" / "data") == []
