from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, InvalidConninfo, ToolFailed
from tests import servers

from .conftest import Place

MISLEADING = {
    "PGHOST": "127.0.0.2",
    "PGHOSTADDR": "127.0.0.2",
    "PGPORT": "1",
    "PGUSER": "nobody",
    "PGDATABASE": "nowhere",
    "PGSSLMODE": "verify-full",
    "PGSSLROOTCERT": "/nowhere/root.crt",
    "PGREQUIREAUTH": "none",
    "PGCHANNELBINDING": "require",
    "PGTARGETSESSIONATTRS": "standby",
    "PGOPTIONS": "-c nonsense=1",
    "PGREQUIREPEER": "nobody",
    "PGCLIENTENCODING": "LATIN1",
    "PGAPPNAME": "theirs",
    "PGGSSENCMODE": "require",
}


def test_a_session_follows_its_url_and_nothing_in_the_environment(
    shop: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in MISLEADING.items():
        monkeypatch.setenv(name, value)
    with shop.connect() as conn:
        row = conn.execute(
            "SELECT current_user, current_setting('application_name'), current_setting('client_encoding')"
        ).fetchone()
    assert row == (servers.APP, "pgbr/test", "UTF8")


def test_a_password_of_the_workers_own_is_never_used(
    shop: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = servers.PASSWORDS[servers.APP].replace("\\", "\\\\").replace(":", "\\:")
    (tmp_path / ".pgpass").write_text(f"*:*:*:*:{password}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSWORD", servers.PASSWORDS[servers.APP])
    without = shop.as_user(servers.APP, "")
    with pytest.raises(ConnectionFailed, match="no password supplied"):
        without.connect(shop.folder, "pgbr/test")
    with pytest.raises(ToolFailed, match="no password supplied"):
        shop.dump({}, without)


def test_a_child_gets_the_password_by_file_and_nothing_of_the_worker(
    shop: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    environment = shop.conninfo.environment(tmp_path, "pgbr/7")
    assert set(environment) - {"PATH", "LC_ALL", "KRB5CCNAME"} == {n for n in environment if n[:2] == "PG"}
    assert environment["PGAPPNAME"] == "pgbr/7"
    assert not [value for value in environment.values() if servers.PASSWORDS[servers.APP] in value]
    assert oct(os.stat(environment["PGPASSFILE"]).st_mode)[-3:] == "600"


def test_a_failed_login_names_the_place_and_not_the_password(shop: Place, tmp_path: Path) -> None:
    wrong = shop.as_user(servers.APP, "wr0ng-secret")
    place = f'127.0.0.1:{shop.server.port}, database "{shop.name}", as "app"'
    with pytest.raises(ConnectionFailed, match=f"^Cannot log in to {place}: password") as caught:
        wrong.connect(tmp_path, "pgbr/test")
    assert "wr0ng-secret" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(ConnectionFailed, match='database "gone" does not exist'):
        shop.conninfo.replace_database("gone").connect(tmp_path, "pgbr/test")
    with pytest.raises(ConnectionFailed, match="Check the host's name"):
        Conninfo.parse("postgresql://u@nowhere.invalid/d").connect(tmp_path, "pgbr/test")
    with pytest.raises(ConnectionFailed, match=r"Connection refused. Is PostgreSQL running"):
        Conninfo.parse("postgresql://u@127.0.0.1:1/d").connect(tmp_path, "pgbr/test")


def test_of_several_hosts_the_one_that_answers_is_used(shop: Place, tmp_path: Path) -> None:
    url = shop.url.replace(f"127.0.0.1:{shop.server.port}", f"127.0.0.1:1,127.0.0.1:{shop.server.port}")
    conninfo = Conninfo.parse(url)
    conninfo.connect(tmp_path, "pgbr/test").close()
    assert shop.dump({"schema_only": True}, conninfo)[0].startswith(b"PGDMP")


def test_a_trusted_owner_may_use_a_socket_and_a_password_file(shop: Place, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    password = servers.PASSWORDS[servers.APP].replace("\\", "\\\\").replace(":", "\\:")
    theirs.write_text(f"*:*:*:*:{password}\n")
    theirs.chmod(0o600)
    url = f"postgresql://app@/{shop.name}?host={shop.server.host}&port={shop.server.port}&passfile={theirs}"
    conninfo = Conninfo.parse(url, trusted=True)
    conninfo.connect(tmp_path, "pgbr/test").close()
    assert shop.dump({"schema_only": True}, conninfo)[0].startswith(b"PGDMP")
    with pytest.raises(InvalidConninfo, match="superusers"):
        Conninfo.parse(url)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"sslmode": "verify-full"}, "paste the CA's certificate"),
        ({"sslmode": "sometimes"}, "TLS mode must be one of"),
        ({"ca_pem": "not pem"}, "CA certificate is not PEM"),
        ({"cert_pem": "x"}, "go together"),
        ({"cert_pem": "x", "key_pem": "y"}, "client certificate is not PEM"),
    ],
)
def test_tls_fields_that_cannot_work_are_refused(fields: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidConninfo, match=complaint):
        Conninfo.parse("postgresql://u@h/d", **fields)  # type: ignore[arg-type]


def test_public_cas_are_used_only_to_verify_in_full(tmp_path: Path) -> None:
    with pytest.raises(InvalidConninfo, match="sslrootcert=system needs sslmode=verify-full"):
        Conninfo.parse("postgresql://u@h/d?sslrootcert=system")
    conninfo = Conninfo.parse("postgresql://u@h/d?sslrootcert=system&sslmode=verify-full")
    bundle = conninfo.environment(tmp_path, "pgbr/test")["PGSSLROOTCERT"]
    assert b"BEGIN CERTIFICATE" in Path(bundle).read_bytes()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p%40ss%2F%3A%20w@db.example.com/shop",
        "postgresql://u@h1:1,h2:2,[2001:db8::1]:3/shop?target_session_attrs=primary",
        "postgresql://u:secret@%2Ftmp%2Fsock:5433/shop?sslmode=disable",
        "postgresql://u@/shop?hostaddr=10.0.0.1&options=-c%20statement_timeout%3D0%20-c%20a%3Db%2Bc",
        "postgresql://u@h/shop?sslmode=verify-full&sslrootcert=system",
    ],
)
def test_url_written_anew_is_the_same_connection(url: str) -> None:
    given = Conninfo.parse(url, trusted=True)
    again = Conninfo.parse(given.url(), trusted=True)

    assert (again.server, again.user, again.password, again.dbname) == (
        given.server, given.user, given.password, "shop",
    )  # fmt: skip
    assert again.options == given.options
    assert given.password not in given.masked() or not given.password
