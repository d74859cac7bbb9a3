from __future__ import annotations

import pytest

from jobs.pgtools import url
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import InvalidConninfo

READ = [
    ("postgres://u@h/d", {"user": "u", "host": "h", "dbname": "d"}),
    ("postgresql://u:p%40ss%3Aw%2Frd@h:1/d%20b", {"password": "p@ss:w/rd", "port": "1", "dbname": "d b"}),
    ("postgresql://u:@h/d", {"user": "u", "host": "h", "dbname": "d"}),
    ("postgresql://u@h", {"user": "u", "host": "h", "dbname": "u"}),
    ("postgresql://u@[2001:db8::1]:6000/d", {"host": "2001:db8::1", "port": "6000"}),
    ("postgresql://u@a:1,b:2/d?target_session_attrs=read-write", {"host": "a,b", "port": "1,2"}),
    ("postgresql:///d?host=h&user=u&password=x", {"host": "h", "user": "u", "password": "x"}),
    ("  postgresql://u@h/d?sslmode=require&channel_binding=require\n", {"sslmode": "require"}),
    ("postgresql://u@h/d?ssl=true", {"sslmode": "require"}),
    ("postgresql://u@h/d?options=endpoint%3Dep-1", {"options": "endpoint=ep-1"}),
    ("postgresql://u@h/d?application_name=theirs&gssencmode=disable", {"host": "h"}),
]  # fmt: skip
REFUSED = [
    ("mysql://u:s3cret@h/d", "begin with postgresql://"),
    ("host=h user=u password=s3cret", "begin with postgresql://"),
    ("postgresql://u:s3cret@/d", "names no host"),
    ("postgresql://u:s3cret@a,,b/d", "names no host"),
    ("postgresql://:s3cret@h/d", "names no user"),
    ("postgresql://u:s3cret@h:port/d", "port is not a number"),
    ("postgresql://u:s3cret@h:70000/d", "port is not a number"),
    ("postgresql://u:s3cret@a:1,b:2,c/d?port=1,2", "one port for all hosts"),
    ("postgresql://u:s3cret@[::1/d", "in brackets"),
    ("postgresql://u:s3cret%zz@h/d", "two hexadecimal digits"),
    ("postgresql://u:s3cret%00@h/d", "two hexadecimal digits"),
    ("postgresql://u:s3c@ret@h/d", "host holds characters"),
    ("postgresql://u:s3c/ret@h/d", "names no user|port"),
    ("postgresql://u:s3cret%0Ax@h/d", "password holds a line break"),
    ("postgresql://u:s3cret@h/d?sslmode=maybe", "sslmode must be one of"),
    ("postgresql://u:s3cret@h/d?connect_timeout=soon", "connect_timeout must be a whole number"),
    ("postgresql://u@h/d?password=s3&cret=1", "option after [?] that PostgreSQL does not know"),
    ("postgresql://u:s3cret@h/d?pgbouncer=true", "pgbouncer cannot be used: connect to the server itself"),
    ("postgresql://u:s3cret@h/d?service=prod", "service cannot be used"),
    ("postgresql://u:s3cret@h/d?%73ervice=prod", "option that pgbr does not pass on"),
    ("postgresql://u:s3cret@h/d?replication=database", "replication cannot be used"),
    ("postgresql://u:s3cret@h/d?sslpassword=s3cret", "sslpassword cannot be used"),
]
FOR_SUPERUSERS = [
    "passfile=/root/.pgpass",
    "sslkey=/etc/ssl/private/key.pem",
    "sslcert=/etc/ssl/cert.pem",
    "sslrootcert=/etc/shadow",
    "sslcrl=/etc/shadow",
    "sslcrldir=/etc",
    "krbsrvname=postgres",
    "gssencmode=require",
    "gsslib=gssapi",
    "requirepeer=root",
]
SOCKETS = [
    "postgresql://u@/d?host=/var/run/postgresql",
    "postgresql://u@%2Fvar%2Frun%2Fpostgresql/d",
    "postgresql://u@h,%2Ftmp/d",
    "postgresql://u@/d?host=@abstract",
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_a_url_is_read_as_libpq_reads_it(text: str, expected: dict[str, str]) -> None:
    values = url.split(text, trusted=False)
    assert values | expected == values
    assert values.keys().isdisjoint({"application_name"})


@pytest.mark.parametrize(("text", "complaint"), REFUSED)
def test_an_unusable_url_is_refused_without_showing_any_of_it(text: str, complaint: str) -> None:
    with pytest.raises(InvalidConninfo, match=complaint) as caught:
        url.split(text, trusted=True)
    for secret in ("s3", "cret"):
        assert secret not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("option", FOR_SUPERUSERS)
def test_options_that_lend_out_the_worker_are_for_trusted_owners(option: str) -> None:
    with pytest.raises(InvalidConninfo, match=f"{option.partition('=')[0]} would use files or the identity"):
        url.split(f"postgresql://u@h/d?{option}", trusted=False)
    name, _, value = option.partition("=")
    assert url.split(f"postgresql://u@h/d?{option}", trusted=True)[name] == value


@pytest.mark.parametrize("text", SOCKETS)
def test_unix_sockets_are_for_trusted_owners(text: str) -> None:
    with pytest.raises(InvalidConninfo, match="unix socket would log in with the worker's identity"):
        url.split(text, trusted=False)
    assert "u" in url.split(text, trusted=True)["user"]


@pytest.mark.parametrize(
    ("text", "label", "masked"),
    [
        ("postgres://u:s@h/d", "h:5432", "postgresql://u:••••@h:5432/d"),
        ("postgres://u@h:1/d%2F1?sslmode=require", "h:1", "postgresql://u@h:1/d%2F1?sslmode=require"),
        ("postgres://a%40b:s@[::1]:9/d", "[::1]:9", "postgresql://a%40b:••••@[::1]:9/d"),
        ("postgres://u:s@a,b:2/d", "a:5432,b:2", "postgresql://u:••••@a:5432,b:2/d"),
        ("postgres://u@/d?host=/run/pg", "/run/pg", "postgresql://u@%2Frun%2Fpg/d"),
    ],
)
def test_labels_and_masked_urls_show_everything_but_the_password(text: str, label: str, masked: str) -> None:
    conninfo = Conninfo.parse(text, trusted=True)
    assert (conninfo.host_label, conninfo.masked()) == (label, masked)


def test_no_repr_shows_a_secret() -> None:
    conninfo = Conninfo.parse("postgresql://u:s3cret@h/d")
    assert "s3cret" not in repr(conninfo) + repr(conninfo.replace_database("e"))
    assert conninfo.replace_database("e").password == "s3cret"
