"""Every variable: a value that does not parse is an error that names it; nothing falls back in silence."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from pgbr import env

SETTINGS = str(env.CHECKOUT / "pgbr" / "settings.py")
URL = "postgresql://pgbr:pa%20ss@db.example.com:5433/pgbr"

Load = Callable[..., dict[str, Any]]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """The settings as they are under these variables and no others."""

    def run(**variables: str) -> dict[str, Any]:
        for name in list(os.environ):
            if name.startswith(("STORAGE_", "PGBR_", "DATABASE_", "SECRET_", "ENCRYPTION_")):
                monkeypatch.delenv(name)
        for name, value in ({"PGBR_HOME": str(tmp_path), "DATABASE_URL": URL} | variables).items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(SETTINGS)

    return run


WHOLE, SECONDS, YES_OR_NO = "is not a whole number", "is not a number of seconds", "write true or false"
WRONG = [
    ("WORKER_CONCURRENCY", "many", WHOLE),
    ("WORKER_CONCURRENCY", "0", "must lie between 1 and 200"),
    ("WORKER_CONCURRENCY", "2.5", WHOLE),
    ("SHUTDOWN_GRACE_SECONDS", "30s", SECONDS),
    ("SHUTDOWN_GRACE_SECONDS", "-1", "must lie between 0 and 10000000"),
    ("HEARTBEAT_SECONDS", "nan", "must lie between 0.1 and"),
    ("STALE_SECONDS", "inf", "must lie between 0.5 and"),
    ("POLL_SECONDS", "0", "must lie between 0.1 and"),
    ("TICK_SECONDS", "x", SECONDS),
    ("STALL_LIMIT", "-2", "must lie between 1 and 100"),
    ("PURGE_DAYS", "1 week", WHOLE),
    ("STORAGE_RETRY_SECONDS", "15m", SECONDS),
    ("UPLOAD_MAX_BYTES", "100GB", WHOLE),
    ("UPLOAD_MAX_BYTES", "0", "must lie between 1 and 9007199254740992"),
    ("SSE_MAX_CLIENTS", "none", WHOLE),
    ("SSE_PING_SECONDS", "0.01", "must lie between 0.1 and"),
    ("DEBUG", "maybe", YES_OR_NO),
    ("STORAGE_FORCE_PATH_STYLE", "2", YES_OR_NO),
    ("BASE_URL", "pgbr.example.com", "is not a URL such as https://"),
    ("BASE_URL", "https://", "is not a URL such as https://"),
    ("BASE_URL", "https://host:port", "is not a URL such as https://"),
    ("STORAGE_ENDPOINT", "s3.example.com:9000", "is not a URL such as https://"),
    ("TRUSTED_PROXIES", "10.0.0.1, proxy", "'proxy' is not an address or a network"),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_value_that_does_not_parse_is_told_with_name_value_and_what_it_should_be(
    load: Load, name: str, value: str, expected: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        load(**{name: value})
    assert f"{name}={value!r}" in str(refused.value)
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["secret.example.com", "mysql://u:secret@h/d", "postgres://u:secret@h:port/d", "postgres://u:secret@h:99999/d",
     "postgres://u:secret@h", "postgres://u:secret@h/", "postgresql://u:secret@[::1/d", "sqlite:///secret.db"],
)  # fmt: skip
def test_a_wrong_database_url_is_told_without_its_password(load: Load, url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL is not of the form") as refused:
        load(DATABASE_URL=url)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_wrong_direct_url_is_told_without_its_password(load: Load) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_DIRECT_URL is not of the form") as refused:
        load(DATABASE_DIRECT_URL="host=db password=secret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (URL, ("pgbr", "pa ss", "db.example.com", 5433, "pgbr")),
        ("postgres://u:p%40%2F%25@[::1]:5433/d", ("u", "p@/%", "::1", 5433, "d")),
        ("postgres://u:$p#x@h/d%20b", ("u", "$p#x", "h", "", "d b")),
        ("postgres://u@%2Frun%2Fpg/d", ("u", "", "/run/pg", "", "d")),
    ],
)
def test_a_database_url_is_taken_apart(load: Load, url: str, expected: tuple[Any, ...]) -> None:
    found = load(DATABASE_URL=url)["DATABASES"]["default"]
    assert tuple(found[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME")) == expected


def test_options_of_the_url_win_over_ours(load: Load) -> None:
    options = load(DATABASE_URL=f"{URL}?sslmode=require&connect_timeout=3")["DATABASES"]["default"]["OPTIONS"]
    assert (options["sslmode"], int(options["connect_timeout"]), options["application_name"]) == (
        "require", 3, "pgbr",
    )  # fmt: skip


# Secrets -----------------------------------------------------------------------------------------

SECRETS = ("DATABASE_URL", "DATABASE_DIRECT_URL", "SECRET_KEY", "ENCRYPTION_KEY", "METRICS_TOKEN",
           "STORAGE_ACCESS_KEY_ID", "STORAGE_SECRET_ACCESS_KEY")  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_may_lie_in_a_file(load: Load, tmp_path: Path, name: str) -> None:
    value = "postgresql://from:file@host/db" if "URL" in name else "from-file"
    (tmp_path / "secret").write_text(f"{value}\n")
    given = {name: "", f"{name}_FILE": str(tmp_path / "secret"), "STORAGE_BUCKET": "b"}
    settings = load(**given)
    found = [settings["DATABASES"], settings["DATABASE_DIRECT_URL"], settings["ENVIRONMENT_STORAGE"],
             settings["SECRET_KEY"], settings["ENCRYPTION_KEYS"], settings["METRICS_TOKEN"]]  # fmt: skip
    assert ("'from'" if name == "DATABASE_URL" else value) in str(found)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_given_twice_or_in_a_file_that_cannot_be_read_is_an_error(
    load: Load, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "secret"
    file.write_text("")
    with pytest.raises(ImproperlyConfigured, match=f"Both {name} and {name}_FILE are set: keep one"):
        load(**{name: "value", f"{name}_FILE": str(file)})
    for path, reason in (
        (file, "is an empty file"),
        (tmp_path, "directory"),
        (tmp_path / "no", "No such file"),
    ):
        with pytest.raises(ImproperlyConfigured, match=f"{name}_FILE={path}.*{reason}"):
            load(**{name: "", f"{name}_FILE": str(path)})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ImproperlyConfigured, match=f"{name}_FILE={file} cannot be read"):
        load(**{name: "", f"{name}_FILE": str(file)})


def test_a_secret_that_begins_with_a_dollar_is_itself(load: Load) -> None:
    """django-environ would look for a variable of that name, and find nothing."""
    assert load(METRICS_TOKEN="$token", token="another")["METRICS_TOKEN"] == "$token"


def test_keys_are_a_list_around_which_spaces_do_not_count(load: Load) -> None:
    assert load(ENCRYPTION_KEY=" one, two,,")["ENCRYPTION_KEYS"] == ["one", "two"]


# Storage and lists -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["STORAGE_ENDPOINT", "STORAGE_ACCESS_KEY_ID", "STORAGE_SECRET_ACCESS_KEY"])
def test_half_a_storage_is_an_error_and_not_the_folder(load: Load, name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{name} is set without STORAGE_BUCKET"):
        load(**{name: "http://127.0.0.1:9000"})


def test_a_storage_from_the_environment(load: Load) -> None:
    assert load(STORAGE_REGION="eu-central-1", STORAGE_PREFIX="x")["ENVIRONMENT_STORAGE"] is None
    given = load(STORAGE_BUCKET=" b ", STORAGE_PREFIX="/a/b/", STORAGE_ENDPOINT="https://s3.example.com/")
    assert given["ENVIRONMENT_STORAGE"] == {
        "bucket": "b", "prefix": "a/b", "endpoint": "https://s3.example.com", "region": "us-east-1",
        "access_key_id": "", "secret_access_key": "", "force_path_style": True,
    }  # fmt: skip
    aws = load(STORAGE_BUCKET="b", STORAGE_ENDPOINT="")["ENVIRONMENT_STORAGE"]
    assert aws["force_path_style"] is False


def test_empty_is_unset_and_lists_are_split(load: Load) -> None:
    settings = load(WORKER_CONCURRENCY="", BASE_URL=" ", ALLOWED_HOSTS="a.example, b.example,", DEBUG="")
    assert (settings["WORKER_CONCURRENCY"], settings["BASE_URL"]) == (5, "http://127.0.0.1:8000")
    assert (settings["ALLOWED_HOSTS"], settings["DEBUG"]) == (["a.example", "b.example"], False)
    assert load(BASE_URL="https://pgbr.example.com/")["SESSION_COOKIE_SECURE"] is True
    assert load(TRUSTED_PROXIES="10.0.0.1/8, ::1")["TRUSTED_PROXIES"] == ["10.0.0.1/8", "::1"]


def test_the_home_is_absolute(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(PGBR_HOME="state")["PGBR_HOME"] == tmp_path / "state"
    monkeypatch.setenv("HOME", "/home/ada")
    assert load(PGBR_HOME="~/pgbr")["BACKUP_FOLDER"] == Path("/home/ada/pgbr/backups")


def test_a_command_with_a_wrong_value_says_so_and_starts_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    told = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=env.CHECKOUT,
        env={"PATH": os.environ["PATH"], "PGBR_HOME": str(home), "WORKER_CONCURRENCY": "lots"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode != 0
    assert "WORKER_CONCURRENCY='lots' is not a whole number." in told.stderr
    assert not (home / "embedded").exists()
