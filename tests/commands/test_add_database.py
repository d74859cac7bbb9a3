from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User

from jobs.models import Database
from jobs.targets import conninfo_for
from pgbr.ports import free_port
from tests.commands.conftest import Call

SECRET = "s3cret-passw0rd"


def test_url_from_stdin_is_logged_in_to_and_kept_sealed(call: Call, superuser: User, url: str) -> None:
    said = call("add_database", "shop", "--url", "-", stdin=f"{url}\n")

    assert said.code == 0
    assert "PostgreSQL 17" in said.out
    assert "a primary" in said.out
    database = Database.objects.get(name="shop", user=superuser)
    assert conninfo_for(database).dbname == urlsplit(url).path.strip("/")
    assert database.checked_at is not None
    password = urlsplit(url).password or "?"
    assert password not in said.out + said.err
    assert password not in database.sealed_url


def test_json_is_all_that_goes_to_stdout(call: Call, superuser: User, url: str) -> None:
    said = call("add_database", "shop", "--url", "-", "--json", stdin=url)

    (printed,) = said.objects
    assert printed["name"] == "shop"
    assert printed["facts"]["version"].startswith("17")
    assert printed["id"] == str(Database.objects.get().id)


def test_password_in_an_argument_is_warned_of(call: Call, superuser: User, url: str) -> None:
    said = call("add_database", "shop", "--url", url)

    assert said.code == 0
    assert "--url -" in said.err


def test_no_check_registers_what_cannot_be_reached(call: Call, superuser: User) -> None:
    unreachable = f"postgresql://u:{SECRET}@127.0.0.1:{free_port()}/x"

    assert call("add_database", "later", "--url", "-", "--no-check", stdin=unreachable).code == 0
    assert Database.objects.get().facts is None


def test_user_option_says_whose_it_is(call: Call, superuser: User, user: User, url: str) -> None:
    assert call("add_database", "shop", "--url", "-", "--user", user.username, stdin=url).code == 0
    assert Database.objects.get().user == user


def _refusals() -> dict[str, tuple[str, str]]:
    """name -> (URL, where HOST is the real server's address; what the message must hold)"""
    return {
        "another scheme": (f"mysql://u:{SECRET}@HOST/pgbr", "postgresql://"),
        "nobody listens": (f"postgresql://u:{SECRET}@127.0.0.1:{free_port()}/x", "refused"),
        "unknown host": (f"postgresql://u:{SECRET}@nowhere.invalid/x", "nowhere.invalid"),
        "wrong password": (f"postgresql://pgbr:{SECRET}@HOST/pgbr", "password authentication failed"),
        "a socket of the machine": ("postgresql://u@/x?host=/tmp", "superuser"),
        "nothing": ("", "URL"),
    }


@pytest.mark.parametrize("case", _refusals())
def test_bad_url_is_refused_and_nothing_is_kept(call: Call, user: User, url: str, case: str) -> None:
    given, expected = _refusals()[case]
    address = urlsplit(url).netloc.rpartition("@")[2]

    said = call(
        "add_database", "shop", "--url", "-", "--user", user.username, stdin=given.replace("HOST", address)
    )

    assert said.code == 2, said
    assert expected in said.err
    assert SECRET not in said.out + said.err
    assert not Database.objects.exists()


def test_missing_database_is_named(call: Call, superuser: User, url: str) -> None:
    said = call("add_database", "shop", "--url", "-", stdin=f"{url.rpartition('/')[0]}/dropped_meanwhile")

    assert said.code == 2
    assert "dropped_meanwhile" in said.err
    assert not Database.objects.exists()


def test_name_is_unique_per_user(call: Call, shop: str, url: str) -> None:
    said = call("add_database", shop, "--url", "-", stdin=url)

    assert said.code == 2
    assert "'shop' is registered already" in said.err
    assert Database.objects.count() == 1


def test_without_a_terminal_it_does_not_ask(call: Call, superuser: User) -> None:
    said = call("add_database", "shop")

    assert said.code == 2
    assert "--url -" in said.err


def test_unreadable_certificate_file_is_named(call: Call, superuser: User, url: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.pem")

    said = call("add_database", "shop", "--url", "-", "--ca-file", missing, stdin=url)

    assert said.code == 2
    assert missing in said.err
