from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from jobs.models import Storage, WorkerProcess
from pgbr.ports import free_port
from tests.commands.conftest import Call, Said
from tests.conftest import Enqueue

pytestmark = pytest.mark.django_db


def found(said: Said, subject: str) -> dict[str, Any]:
    (finding,) = [finding for finding in said.objects if finding["check"] == subject]
    return finding


def failures(said: Said) -> list[str]:
    return [finding["check"] for finding in said.objects if finding["status"] == "failed"]


def test_a_healthy_instance_passes(call: Call, shop: str) -> None:
    said = call("doctor", "--json")

    assert said.code == 0, failures(said)
    assert failures(said) == []
    assert "dumped by 17" in found(said, "database 'shop'")["message"]
    assert found(said, "storage 'local folder'")["status"] == "ok"
    assert found(said, "migrations")["status"] == "ok"


def test_every_failure_has_a_remedy(call: Call, superuser: User, settings: Settings, tmp_path: Path) -> None:
    settings.PGBR_PG_BIN = [str(tmp_path / "nothing")]
    settings.BACKUP_FOLDER = Path("/proc/pgbr")

    said = call("doctor", "--json")

    assert said.code == 1
    assert {"client tools", "backup folder"} <= set(failures(said))
    assert all(finding["remedy"] for finding in said.objects if finding["status"] == "failed")
    assert str(tmp_path / "nothing") in json.dumps(said.objects)


def test_a_server_that_does_not_answer_is_named(call: Call, make_database: Callable[..., Any]) -> None:
    make_database(f"postgresql://u:s3cret-pw@127.0.0.1:{free_port()}/x", "away")

    said = call("doctor", "--json")

    assert (said.code, failures(said)) == (1, ["database 'away'"])
    assert "Connection refused" in found(said, "database 'away'")["message"]
    assert "s3cret-pw" not in said.out


def test_secrets_that_no_key_opens_are_named(call: Call, shop: str, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    said = call("doctor", "--json")

    assert said.code == 1
    assert "'shop'" in found(said, "keys")["message"]
    assert "ENCRYPTION_KEY" in found(said, "keys")["remedy"]


def test_jobs_that_nobody_takes_are_trouble(call: Call, superuser: User, enqueue: Enqueue) -> None:
    assert found(call("doctor", "--json"), "worker (backup)")["status"] == "warning"
    enqueue()
    assert found(call("doctor", "--json"), "worker (backup)")["status"] == "failed"
    WorkerProcess.objects.create(name="w", host="h", pid=1, role="backup", heartbeat_at=Now())
    assert found(call("doctor", "--json"), "worker (backup)")["status"] == "ok"


def test_a_storage_without_its_bucket_is_trouble(call: Call, s3_storage: Storage) -> None:
    assert found(call("doctor", "--json"), "storage 'bucket'")["status"] == "ok"
    Storage.objects.filter(id=s3_storage.id).update(sealed_secret="")

    said = call("doctor", "--json")

    assert (said.code, failures(said)) == (1, ["storage 'bucket'"])


def test_a_database_of_its_own_that_is_away_is_one_finding(manage: Call) -> None:
    said = manage("doctor", "--json", DATABASE_URL=f"postgres://u:s3cret-pw@127.0.0.1:{free_port()}/x")

    assert (said.code, failures(said)) == (1, ["database"])
    assert "DATABASE_URL" in found(said, "database")["remedy"]
    assert "s3cret-pw" not in said.out + said.err


def test_people_get_words(call: Call, shop: str) -> None:
    said = call("doctor")

    assert "ok     migrations: all applied" in said.out
    assert said.out.endswith("Everything a run needs is there.\n")
