"""Takes a connection URL apart, by libpq's own parser, and refuses what would lend out the worker.

What a URL may say depends on whose it is. An option that makes libpq read a file of the worker, log in with
its operating-system identity or leave by another route than TCP is for a trusted owner (a superuser) only.
No message here quotes the URL: a badly escaped password can end up in any part of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict

from .errors import InvalidConninfo

SCHEMES = ("postgresql://", "postgres://")
SSLMODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
TARGET = frozenset({"host", "hostaddr", "port", "user", "password", "dbname"})
HARMLESS = frozenset(
    {
        "sslmode", "sslnegotiation", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version",
        "channel_binding", "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "target_session_attrs", "load_balance_hosts", "options",
    }
)  # fmt: skip
TRUSTED_ONLY = frozenset(
    {
        "passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "requirepeer", "krbsrvname",
        "gsslib", "gssdelegation", "require_auth",
    }
)  # fmt: skip
# Said by many URLs; pgbr has its own answer to each, so they are dropped.
OURS = frozenset({"application_name", "fallback_application_name"})
NEVER = {
    "service": "write the server's host, user and database into the URL instead",
    "servicefile": "write the server's host, user and database into the URL instead",
    "client_encoding": "use the encoding option of the backup",
    "replication": "a dump needs an ordinary session",
    "sslpassword": "paste the client key without passphrase",
    "sslkeylogfile": "it writes the session's keys to a file",
    "pgbouncer": "connect to the server itself, not through a pooler",
    "schema": "name schemas in the options of the backup",
    "connection_limit": "it belongs to another client library",
    "pool_timeout": "it belongs to another client library",
    "sslaccept": "use sslmode",
    "sslidentity": "paste the client certificate and key",
}
INTEGERS = frozenset(
    {
        "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout", "sslsni",
    }
)  # fmt: skip
LONGEST_CONNECT = 600
MOST_HOSTS = 16  # each may take its time to answer
ENCODE_HINT = "Characters such as @ : / ? # % in a password must be percent-encoded (%40 for @)."


def split(url: str, *, trusted: bool) -> dict[str, str]:
    """The libpq keywords of a postgresql:// or postgres:// URL, checked; raises InvalidConninfo.

    `user` and `host` are always there, `dbname` defaults to the user as in libpq, `port` may be absent.
    """
    url = url.strip()
    if not url.startswith(SCHEMES):
        raise InvalidConninfo("The URL must begin with postgresql:// (or postgres://).")
    values = {key: value for key, value in _parse(url).items() if key not in OURS and value != ""}
    _check_names(values, trusted)
    _check_target(values, trusted)
    _check_values(values)
    return values


def _parse(url: str) -> dict[str, str]:
    query = url.partition("?")[2]
    for name, remedy in NEVER.items():
        if re.search(rf"(^|&){name}=", query):
            raise InvalidConninfo(f"The URL's option {name} cannot be used: {remedy}.")
    try:
        return {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError as error:
        raise InvalidConninfo(_complaint(str(error))) from None


def _complaint(text: str) -> str:
    if "query parameter" in text:
        known = ", ".join(sorted(HARMLESS))
        return (
            f"The URL has an option after ? that PostgreSQL does not know. Usable are: {known}. {ENCODE_HINT}"
        )
    if "percent-encoded" in text or "forbidden value %00" in text:
        return f"The URL has a % that is not followed by two hexadecimal digits, or %00. {ENCODE_HINT}"
    if "IPv6" in text or '"]"' in text:
        return "The URL's IPv6 address must stand in brackets, as in [2001:db8::1]."
    return f"The URL cannot be read as postgresql://user:password@host:port/database. {ENCODE_HINT}"


def _check_names(values: dict[str, str], trusted: bool) -> None:
    if not trusted and values.get("gssencmode") == "prefer":
        del values["gssencmode"]  # libpq's default, said by some URLs: with a ticket of the worker's, if any
    for name in sorted(values.keys() - TARGET - HARMLESS):
        if name == "sslrootcert" and values[name] == "system":
            continue
        if name == "gssencmode" and values[name] in ("disable", "prefer"):
            continue
        if name not in TRUSTED_ONLY and name != "gssencmode":
            raise InvalidConninfo("The URL has an option that pgbr does not pass on. " + _usable())
        if not trusted:
            raise InvalidConninfo(
                f"The URL's option {name} would use files or the identity of the worker; that is for "
                "superusers. Paste TLS material in the fields for it."
            )


def _usable() -> str:
    return "Usable are: " + ", ".join(sorted(HARMLESS)) + "."


def _check_target(values: dict[str, str], trusted: bool) -> None:
    if "user" not in values:
        raise InvalidConninfo("The URL names no user: postgresql://USER:password@host:port/database.")
    values.setdefault("dbname", values["user"])
    hosts = values.get("host", values.get("hostaddr", "")).split(",")
    if not all(hosts):
        raise InvalidConninfo("The URL names no host: postgresql://user:password@HOST:port/database.")
    if len(hosts) > MOST_HOSTS:
        raise InvalidConninfo(f"The URL names more than {MOST_HOSTS} hosts.")
    for host in [*hosts, *filter(None, values.get("hostaddr", "").split(","))]:
        _check_host(host, trusted)
    ports = values.get("port", "").split(",")
    if len(ports) not in (1, len(hosts)):
        raise InvalidConninfo("The URL must give one port for all hosts, or one for each.")
    for port in ports:
        if port and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
            raise InvalidConninfo(f"The URL's port is not a number from 1 to 65535. {ENCODE_HINT}")


def _check_host(host: str, trusted: bool) -> None:
    if host.startswith(("/", "@")):
        if not trusted:
            raise InvalidConninfo(
                "A unix socket would log in with the worker's identity; that is for superusers. "
                "Use a host name or address."
            )
    elif not re.fullmatch(r"[\w.:%-]+", host):
        raise InvalidConninfo(f"The URL's host holds characters no host name has. {ENCODE_HINT}")


def _check_values(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        if any(character in value for character in "\0\r\n"):
            raise InvalidConninfo(f"The URL's {name} holds a line break, which cannot be passed on.")
    for name in sorted(INTEGERS & values.keys()):
        if not re.fullmatch(r"\d{1,9}", values[name], re.ASCII):
            raise InvalidConninfo(f"The URL's option {name} must be a whole number.")
    if not 1 <= int(values.get("connect_timeout", "1")) <= LONGEST_CONNECT:
        raise InvalidConninfo(f"The URL's connect_timeout must be from 1 to {LONGEST_CONNECT} seconds.")
    if values.get("sslmode", "prefer") not in SSLMODES:
        raise InvalidConninfo("The URL's sslmode must be one of: " + ", ".join(SSLMODES) + ".")
