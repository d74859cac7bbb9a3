from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgbr import embedded
from pgbr.embedded import Connection

from .conftest import connect, copy_home, make_place, server_pid, working_in


@pytest.fixture(scope="module")
def home(stopped_home: Path) -> Iterator[Path]:
    """One running server for all tests of this file."""
    place = make_place()
    home = copy_home(stopped_home, place)
    embedded.ensure(home)
    yield home
    embedded.stop(home)
    shutil.rmtree(place)


@pytest.fixture
def known(home: Path) -> Connection:
    return embedded.ensure(home)


@pytest.mark.parametrize("over", ["socket", "tcp"])
@pytest.mark.parametrize("user", ["pgbr", "postgres"])
def test_wrong_and_missing_passwords_are_refused(known: Connection, over: str, user: str) -> None:
    host = known.host if over == "socket" else "127.0.0.1"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(known, host=host, user=user, password="wrong", dbname="postgres")
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        connect(known, host=host, user=user, password="", passfile="/dev/null", dbname="postgres")


def test_every_rule_of_admission_is_scram(home: Path, known: Connection) -> None:
    with connect(embedded.superuser(home)) as conn:
        methods = conn.execute("SELECT DISTINCT auth_method FROM pg_hba_file_rules").fetchall()
        stored = conn.execute(
            "SELECT DISTINCT left(rolpassword, 14) FROM pg_authid WHERE rolcanlogin"
        ).fetchall()
    assert methods == [("scram-sha-256",)]
    assert stored == [("SCRAM-SHA-256$",)]


def test_only_the_loopback_address_is_listened_on(known: Connection) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells our own address in the network
        ours = probe.getsockname()[0]
    with psycopg.connect(known.url) as conn:
        assert conn.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((ours if ours != "127.0.0.1" else "127.0.0.2", known.port), 5)


def test_secrets_and_data_are_for_their_owner_only(home: Path, known: Connection) -> None:
    folder = home / "embedded"
    for name in ("connection.json", "superuser", "lock"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    for place in (folder / "data", folder / "log", Path(known.host)):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    for log in (folder / "log").iterdir():
        assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_passwords_show_neither_in_processes_nor_logs_nor_representations(
    home: Path, known: Connection
) -> None:
    secrets = [known.password, (home / "embedded" / "superuser").read_text().strip()]
    seen = repr(known) + embedded.status(home).in_words() + repr(embedded.status(home))
    seen += "".join(log.read_text() for log in (home / "embedded" / "log").iterdir())
    for pid in working_in(home / "embedded" / "data"):
        seen += Path(f"/proc/{pid}/cmdline").read_text()
    assert not [secret for secret in secrets if secret in seen]


def test_server_never_runs_as_root(home: Path, known: Connection) -> None:
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in working_in(home / "embedded" / "data")}
    assert len(owners) == 1
    assert 0 not in owners
    status = Path(f"/proc/{server_pid(home)}/status").read_text()
    groups = next(line for line in status.splitlines() if line.startswith("Groups:")).split()[1:]
    assert os.geteuid() != 0 or "0" not in groups
