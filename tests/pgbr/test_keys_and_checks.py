from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

from cryptography.fernet import Fernet
from django.core.checks import CheckMessage
from pytest_django.fixtures import Settings

from pgbr import checks, keys
from tests.workers import CHECKOUT


def _make(home: Path, name: str) -> str:
    return keys.made_once(home, name)


def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(6) as pool:
        made = pool.starmap(_make, [(tmp_path / "home", "encryption")] * 24, chunksize=1)
    assert len(set(made)) == 1
    Fernet(made[0])


def test_keys_are_for_the_owners_eyes_and_stay(tmp_path: Path) -> None:
    secret = keys.made_once(tmp_path, "secret")
    assert len(secret) >= 50
    assert keys.made_once(tmp_path, "secret") == secret
    assert keys.made_once(tmp_path, "encryption") != secret
    files = [path for path in (tmp_path / "keys").iterdir() if not path.name.startswith(".")]
    assert sorted(path.name for path in files) == ["encryption", "secret"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700


def test_what_a_killed_process_left_half_written_does_not_become_the_key(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "encryption.new").write_text("half a k")
    Fernet(keys.made_once(tmp_path, "encryption"))


# Checks ------------------------------------------------------------------------------------------


def told(found: list[CheckMessage]) -> list[tuple[str | None, str, str]]:
    return [(message.id, message.msg, message.hint or "") for message in found]


def test_missing_keys_are_told_with_the_command_that_makes_them(settings: Settings) -> None:
    settings.SECRET_KEY, settings.ENCRYPTION_KEYS = "x", []
    [(number, message, hint)] = told(checks.keys())
    assert (number, message) == ("pgbr.E002", "ENCRYPTION_KEY is not set, and DATABASE_URL is.")
    assert "Fernet.generate_key()" in hint
    made = hint.partition('-c "')[2].rstrip('"')
    assert made.startswith("from cryptography")


def test_a_command_without_keys_beside_a_database_url_names_both_and_does_not_start(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=CHECKOUT,
        env={
            "PATH": os.environ["PATH"],
            "PGBR_HOME": str(tmp_path),
            "DATABASE_URL": "postgresql://a:b@127.0.0.1/c",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode != 0
    for name, remedy in (
        ("SECRET_KEY", "secrets.token_urlsafe(50)"),
        ("ENCRYPTION_KEY", "Fernet.generate_key()"),
    ):
        assert f"{name} is not set, and DATABASE_URL is." in told.stderr
        assert remedy in told.stderr
    assert "Traceback" not in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_none_is_told_by_its_place_and_not_shown(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), "s3cret-but-wrong"]
    [(number, message, _)] = told(checks.keys())
    assert number == "pgbr.E003"
    assert "key number 2 of ENCRYPTION_KEY" in message
    assert "s3cret" not in message


def test_good_settings_have_nothing_to_tell(settings: Settings) -> None:
    assert checks.keys() == checks.timings() == checks.storage() == []


def test_timings_that_would_take_healthy_jobs_away_are_refused(settings: Settings) -> None:
    settings.HEARTBEAT_SECONDS, settings.STALE_SECONDS = 15, 20
    [(number, message, _)] = told(checks.timings())
    assert number == "pgbr.E004"
    assert "STALE_SECONDS (20)" in message
    assert "HEARTBEAT_SECONDS (15)" in message


def test_a_bucket_without_keys_is_refused(settings: Settings) -> None:
    settings.ENVIRONMENT_STORAGE = {"access_key_id": "k", "secret_access_key": ""}
    [(number, _, hint)] = told(checks.storage())
    assert number == "pgbr.E005"
    assert "_FILE" in hint


def test_plain_http_to_the_outside_is_a_warning_on_deployment(settings: Settings) -> None:
    settings.BASE_URL = "http://pgbr.example.com"
    assert told(checks.public_url())[0][0] == "pgbr.W001"
    settings.BASE_URL = "https://pgbr.example.com"
    assert checks.public_url() == []
