"""A connection to a user's server: what its URL says, and how libpq is told without anybody reading along.

The password reaches child processes through a password file of mode 0600 in the job's scratch folder, never
by argv or PGPASSWORD. Every place where libpq would otherwise look by itself (PG* variables, ~/.pgpass,
~/.postgresql, which it finds through the account's home even without HOME) is named explicitly, so that a
connection holds what its owner gave and nothing of the worker's.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from . import pem, url
from .errors import ConnectionFailed, InvalidConninfo
from .hints import login_message
from .mask import MASK, mask
from .trust import system_certificates

ENVIRONMENT = MappingProxyType(
    {
        "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "user": "PGUSER",
        "dbname": "PGDATABASE", "passfile": "PGPASSFILE", "application_name": "PGAPPNAME",
        "connect_timeout": "PGCONNECT_TIMEOUT", "options": "PGOPTIONS",
        "target_session_attrs": "PGTARGETSESSIONATTRS",
        "load_balance_hosts": "PGLOADBALANCEHOSTS", "channel_binding": "PGCHANNELBINDING",
        "require_auth": "PGREQUIREAUTH", "requirepeer": "PGREQUIREPEER", "sslmode": "PGSSLMODE",
        "sslnegotiation": "PGSSLNEGOTIATION", "sslsni": "PGSSLSNI", "sslrootcert": "PGSSLROOTCERT",
        "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslcrl": "PGSSLCRL", "sslcrldir": "PGSSLCRLDIR",
        "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
        "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION", "gssencmode": "PGGSSENCMODE",
        "krbsrvname": "PGKRBSRVNAME", "gsslib": "PGGSSLIB", "gssdelegation": "PGGSSDELEGATION",
    }
)  # fmt: skip
# These have no variable; a service file carries them to a child. A peer that vanishes in the middle of a dump
# is noticed after two minutes instead of the kernel's two hours.
SERVICE_ONLY = MappingProxyType(
    {
        "keepalives": "1", "keepalives_idle": "60", "keepalives_interval": "20", "keepalives_count": "3",
        "tcp_user_timeout": "0",
    }
)  # fmt: skip
CONNECT_SECONDS = 15
# Where libpq takes an empty value for a mistake, this is its default.
NEUTRAL = MappingProxyType({"sslcertmode": "allow", "client_encoding": "UTF8"})
NO_NEUTRAL = frozenset({"service", "servicefile", "min_protocol_version", "max_protocol_version"})


@dataclass(frozen=True)
class Conninfo:
    """One database on one server (or on several hosts of one, comma separated as in libpq).

    `options` are further libpq keywords. The repr shows no secret.
    """

    host: str
    port: str
    user: str
    dbname: str
    password: str = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    ca_pem: str = field(default="", repr=False)
    cert_pem: str = field(default="", repr=False)
    key_pem: str = field(default="", repr=False)
    trusted: bool = False

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        ca_pem: str = "",
        cert_pem: str = "",
        key_pem: str = "",
        sslmode: str = "",
        trusted: bool = False,
    ) -> Conninfo:
        """From a URL and the TLS fields beside it, which win over the URL's own. Raises InvalidConninfo.

        `trusted` (the owner is a superuser) allows unix sockets and options that read the worker's files.
        """
        values = url.split(text, trusted=trusted)
        if sslmode and sslmode not in url.SSLMODES:
            raise InvalidConninfo("The TLS mode must be one of: " + ", ".join(url.SSLMODES) + ".")
        host, port = values.pop("host", ""), values.pop("port", "5432")
        user, dbname, password = values.pop("user"), values.pop("dbname"), values.pop("password", "")
        options = {**values, **({"sslmode": sslmode} if sslmode else {})}
        ca_pem, cert_pem, key_pem = ca_pem.strip(), cert_pem.strip(), key_pem.strip()
        _check_tls(options, ca_pem, cert_pem, key_pem)
        return cls(host, port, user, dbname, password, options, ca_pem, cert_pem, key_pem, trusted)

    @property
    def host_label(self) -> str:
        """ "host:port", "[::1]:5432", a socket's folder, or several of these separated by commas."""
        return ",".join(_label(host, port) for host, port in self._addresses())

    @property
    def server(self) -> frozenset[tuple[str, str]]:
        """Hosts and ports, the same for every spelling of them: what tells one server from another without
        asking."""
        return frozenset((_canonical(host), port.lstrip("0")) for host, port in self._addresses())

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a log."""
        return (self.password,) if self.password else ()

    def masked(self) -> str:
        """The URL as people may see it: the password as dots."""
        hosts = self.host_label
        if "/" in hosts or "@" in hosts:
            hosts = ",".join(quote(host, safe=":") for host in hosts.split(","))
        return self._url(MASK if self.password else "", hosts)

    def url(self) -> str:
        """The URL with the password, to be sealed; TLS material stands beside it."""
        hosts = ",".join(
            f"[{quote(host, safe=':')}]:{port}" if ":" in host else f"{quote(host, safe='')}:{port}"
            for host, port in self._addresses()
        )
        return self._url(quote(self.password, safe=""), hosts)

    def _url(self, password: str, hosts: str) -> str:
        login = quote(self.user, safe="") + (f":{password}" if password else "")
        query = f"?{urlencode(self.options, safe=',/', quote_via=quote)}" if self.options else ""
        return f"postgresql://{login}@{hosts}/{quote(self.dbname, safe='')}{query}"

    def _addresses(self) -> list[tuple[str, str]]:
        hosts = (self.host or self.options["hostaddr"]).split(",")
        ports = self.port.split(",")
        ports = ports * len(hosts) if len(ports) == 1 else ports
        return [(host, port or "5432") for host, port in zip(hosts, ports, strict=True)]

    def replace_database(self, name: str) -> Conninfo:
        """The same login on another database of the same server."""
        return replace(self, dbname=name)

    def impatient(self, seconds: int) -> Conninfo:
        """The same, but trying all hosts takes no longer than about that. libpq gives each its full time, and
        two seconds at least."""
        asked = int(self.options.get("connect_timeout", CONNECT_SECONDS))
        each = max(min(asked, seconds // len(self.host_label.split(","))), 2)
        return replace(self, options={**self.options, "connect_timeout": str(each)})

    def environment(self, folder: Path, application_name: str) -> dict[str, str]:
        """The complete environment of a child that connects here: PATH, LC_ALL and what libpq reads.

        Writes the files it names into `folder`, which must be the job's own. Add `Toolset.environment()`.
        """
        values = self._values(folder, application_name)
        environment = {"PATH": os.defpath, "LC_ALL": "C"}
        environment |= {ENVIRONMENT[name]: value for name, value in values.items() if name in ENVIRONMENT}
        service = "".join(f"{name}={values[name]}\n" for name in SERVICE_ONLY)
        environment["PGSERVICEFILE"] = _write(folder / "service.conf", f"[pgbr]\n{service}")
        environment["PGSERVICE"] = "pgbr"
        if not self.trusted:
            # Before version 16 libpq has no other way to be kept from a Kerberos ticket of the worker.
            environment["KRB5CCNAME"] = f"FILE:{folder / 'none'}"
        return environment

    def connect(self, folder: Path, application_name: str) -> psycopg.Connection[tuple[object, ...]]:
        """An open session in autocommit, without prepared statements; raises ConnectionFailed.

        A service that the process's own PGSERVICE names is the one thing libpq cannot be kept from here; it
        can add keepalive settings, never a secret.
        """
        values = self._values(folder, application_name)
        if self.password:
            values["password"] = self.password
        try:
            return psycopg.connect(
                make_conninfo("", **_sealed(values)), autocommit=True, prepare_threshold=None
            )
        except psycopg.Error as error:
            reason = login_message(mask(str(error), self.secrets))
        # Raised outside the handler: psycopg's own error would be shown with it, unmasked.
        where = f'{self.host_label}, database "{self.dbname}", as "{self.user}"'
        raise ConnectionFailed(f"Cannot log in to {where}: {reason}")

    def _values(self, folder: Path, application_name: str) -> dict[str, str]:
        """Every libpq keyword but the password, for a session of ours."""
        values = {
            "connect_timeout": str(CONNECT_SECONDS),
            "sslmode": "prefer",
            "gssencmode": "disable",
            **SERVICE_ONLY,
            **{name: str(folder / "none") for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl")},
            "require_auth": "!sspi" if self.trusted else "!gss,!sspi",
            **self.options,
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "application_name": application_name,
        }
        if self.host:
            values["host"] = self.host
        return values | self._files(folder, values)

    def _files(self, folder: Path, values: Mapping[str, str]) -> dict[str, str]:
        escaped = self.password.replace("\\", "\\\\").replace(":", "\\:")
        written = {"sslrootcert": system_certificates()} if values["sslrootcert"] == "system" else {}
        if self.password or "passfile" not in values:
            line = f"*:*:*:*:{escaped}\n" if self.password else ""
            written["passfile"] = _write(folder / "passfile", line)
        material = {"sslrootcert": self.ca_pem, "sslcert": self.cert_pem, "sslkey": self.key_pem}
        for keyword, text in material.items():
            if text:
                written[keyword] = _write(folder / f"{keyword}.pem", text + "\n")
        return written


def _label(host: str, port: str) -> str:
    if host.startswith(("/", "@")):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _canonical(host: str) -> str:
    """Of a name or an address; this machine has one name."""
    name = host if host.startswith(("/", "@")) else host.lower().rstrip(".")
    with suppress(ValueError):
        name = str(ip_address(name.partition("%")[0]))
    return "localhost" if name in ("127.0.0.1", "::1") else name


def _check_tls(options: Mapping[str, str], ca_pem: str, cert_pem: str, key_pem: str) -> None:
    pem.check(ca_pem, cert_pem, key_pem)
    mode = options.get("sslmode", "prefer")
    if (ca_pem or cert_pem) and mode == "disable":
        raise InvalidConninfo("TLS material was given, but sslmode=disable sends everything in the clear.")
    if mode.startswith("verify") and not (ca_pem or options.get("sslrootcert")):
        raise InvalidConninfo(
            f"sslmode={mode} checks the server's certificate: paste the CA's certificate, or add "
            "sslrootcert=system for a server whose certificate a public CA signed."
        )
    if options.get("sslrootcert") == "system" and not ca_pem and mode != "verify-full":
        raise InvalidConninfo("sslrootcert=system needs sslmode=verify-full.")


def _sealed(values: Mapping[str, str]) -> dict[str, str]:
    """`values` with every keyword that libpq would otherwise take from a PG* variable set to its default."""
    sealed: dict[str, str] = {}
    for option in pq.Conninfo.get_defaults():
        name = option.keyword.decode()
        if name in values:
            sealed[name] = values[name]
        elif option.envvar and name not in NO_NEUTRAL:
            sealed[name] = NEUTRAL.get(name) or (option.compiled or b"").decode()
    return sealed


def _write(path: Path, text: str) -> str:
    """Replace `path` in one step (a child may be reading the same text), for the owner's eyes only."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    beside.replace(path)
    return str(path)
