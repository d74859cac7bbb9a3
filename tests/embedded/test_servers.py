"""The throw-away servers that the rest of the suite dumps from."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest

from tests import servers

from .conftest import kill, output_of, python, wait_until, working_in


@pytest.mark.majors
@pytest.mark.parametrize("major", servers.MAJORS)
def test_each_major_serves_databases_of_a_role_without_privileges(major: int) -> None:
    server = servers.get(major)
    assert servers.get(major).port == server.port
    with psycopg.connect(server.create_database('odd "name"')) as conn:
        assert conn.info.server_version // 10000 == server.major == major
        assert conn.execute("SELECT usesuper FROM pg_user WHERE usename = current_user").fetchone() == (
            False,
        )
    used = psycopg.connect(server.url('odd "name"'))
    server.drop_database('odd "name"')
    used.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.url('odd "name"'))


def test_own_server_can_be_stopped_and_comes_back_at_the_same_url() -> None:
    server = servers.private(17)
    url = server.create_database("kept")
    server.stop()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    server.start()
    psycopg.connect(url).close()
    servers.discard(server)
    assert not server.cluster.data.exists()
    assert not server.cluster.running()


RUN = """
import os, sys, time
from tests import servers
folder = servers.open_session()
servers.get(17)
print(folder, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(servers.SESSION, raising=False)


@pytest.mark.usefixtures("outside")
def test_servers_end_with_the_run_that_started_them() -> None:
    folder = Path(output_of(python(RUN, "leave")))
    assert not folder.exists()


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_killed_runs_leave_no_server_for_long(number: int) -> None:
    run = python(RUN, "wait")
    assert run.stdout is not None
    folder = Path(run.stdout.readline().strip())
    kill(run.pid, number)
    run.communicate()
    output_of(python(RUN, "leave"))
    wait_until(lambda: not folder.exists())
    assert working_in(folder / "17" / "data") == []
    assert os.environ.get(servers.SESSION) != str(folder)
