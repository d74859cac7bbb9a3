from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg

from pgbr import embedded

from .conftest import CHECKOUT, server_pid


def embedded_db(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PGBR_HOME")}
    return subprocess.run(
        [sys.executable, "manage.py", "embedded_db", *arguments],
        cwd=CHECKOUT,
        env=clean | {"PGBR_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_command_tells_where_state_lies_starts_and_stops(new_home: Path) -> None:
    before = embedded_db(new_home, "status")
    assert "no embedded database yet" in before.stdout
    assert str(new_home / "embedded" / "data") in before.stdout
    assert not (new_home / "embedded").exists()
    with psycopg.connect(embedded_db(new_home, "url").stdout.strip()) as conn:
        assert conn.execute("SELECT current_database()").fetchone() == ("pgbr",)
    answer = json.loads(embedded_db(new_home, "status", "--json").stdout)
    assert answer["running"] is True
    assert answer["pid"] == server_pid(new_home)
    assert answer["data"] == str(new_home / "embedded" / "data")
    stopped = embedded_db(new_home, "stop")
    assert "stopped" in stopped.stdout
    assert not embedded.status(new_home).running


def test_command_refuses_to_start_beside_a_given_database(new_home: Path) -> None:
    refused = embedded_db(
        new_home, "start", DATABASE_URL="postgresql://a:b@127.0.0.1:9/c", SECRET_KEY="k", ENCRYPTION_KEY="k"
    )
    assert refused.returncode != 0
    assert "DATABASE_URL is set" in refused.stderr
    assert not new_home.exists()


def test_command_reports_trouble_in_one_line(new_home: Path) -> None:
    data = new_home / "embedded" / "data"
    data.mkdir(parents=True)
    (data / "precious").touch()
    refused = embedded_db(new_home, "start")
    assert refused.returncode != 0
    assert "not empty" in refused.stderr
    assert "Traceback" not in refused.stderr
