"""The PostgreSQL that pgbr starts for itself when it is given no DATABASE_URL.

It holds the queue, the history and the settings, so it is run like a real one: synced to disk, with
passwords, never as root, and nothing here ever removes a data directory. Importing this starts nothing.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from .accounts import (
    ACCOUNT_NAME,
    Account,
    LocalServerError,
    account_of,
    find_account,
    hand_over,
    server_account,
)
from .cluster import Cluster, PortTaken, accepts
from .embedded_home import (
    Config,
    Connection,
    default_home,
    locked,
    make_folders,
    read_record,
    read_superuser,
    write_private,
    write_record,
)
from .ports import free_port
from .server_tools import ClusterError, choose, readable

__all__ = [
    "ClusterError",
    "Config",
    "Connection",
    "LocalServerError",
    "Status",
    "connection",
    "default_home",
    "ensure",
    "status",
    "stop",
    "superuser",
]

DATABASE = "pgbr"
ROLE = "pgbr"
SUPERUSER = "postgres"
PORT_ATTEMPTS = 5
SETTINGS = {
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # One file per weekday, overwritten a week later.
    "logging_collector": "on",
    "log_directory": "../log",
    "log_filename": "server-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %u@%d %a ",
}


def connection(home: Path) -> Connection | None:
    """How the application connects, as last written down; None before the first `ensure`. Starts nothing."""
    return read_record(Config(home))


def ensure(home: Path) -> Connection:
    """Make the server of `home` exist and run, and return how the application connects to it.

    Any number of processes may call this at once. The port may differ from an earlier answer when somebody
    else took that one meanwhile. Raises LocalServerError.
    """
    config = Config(home.absolute())
    known = read_record(config)
    if known and accepts(known.host, known.port):
        return known
    account = _account(config)
    make_folders(config, account)
    with locked(config):
        known = read_record(config)
        if known and accepts(known.host, known.port):
            return known
        return _bring_up(config, account, known)


def stop(home: Path) -> None:
    """Stop the server, ending its connections; fine when it does not run or was never made."""
    config = Config(home.absolute())
    if config.major() is None:
        return
    account = _account(config)
    make_folders(config, account)
    with locked(config):
        _cluster(config, account).stop("fast")


def superuser(home: Path) -> Connection:
    """How the superuser connects, for making roles and databases beside the application's own."""
    known = ensure(home)
    password = read_superuser(Config(home.absolute())) or ""
    return Connection(known.host, known.port, SUPERUSER, password, "postgres")


@dataclass(frozen=True)
class Status:
    """Where the embedded server's state lies, and whether it runs. `pid` is None also when out of sight."""

    running: bool
    home: str
    data: str
    log: str
    account: str
    major: int | None
    socket: str | None = None
    port: int | None = None
    pid: int | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def in_words(self) -> str:
        if self.major is None:
            return f"There is no embedded database yet. It would lie in {self.data}, run by {self.account}."
        state = f"running (pid {self.pid or 'out of sight'})" if self.running else "stopped"
        lines = [
            f"Embedded PostgreSQL {self.major}: {state}, as {self.account}",
            f"  state     {self.home}",
            f"  data      {self.data}",
            f"  logs      {self.log}",
        ]
        if self.running:
            lines.append(f"  listening {self.socket} and 127.0.0.1, port {self.port}")
        return "\n".join(lines)


def status(home: Path) -> Status:
    """What is there and whether it takes connections; changes nothing."""
    config = Config(home.absolute())
    known = read_record(config)
    root = os.geteuid() == 0
    account = (_owner_account(config) or find_account()) if root else account_of(os.geteuid())
    cluster = Cluster(Path(), config.data, config.run, account=account if root else None)
    return Status(
        running=known is not None and accepts(known.host, known.port),
        home=str(config.home),
        data=str(config.data),
        log=str(cluster.log),
        account=account.name if account else ACCOUNT_NAME,
        major=config.major(),
        socket=known.host if known else None,
        port=known.port if known else None,
        pid=cluster.pid(),
    )


def _account(config: Config) -> Account | None:
    """Who runs the server: for root the user whose state it is, else the dedicated account."""
    return (_owner_account(config) or server_account()) if os.geteuid() == 0 else None


def _owner_account(config: Config) -> Account | None:
    owner = config.owner()
    if not owner:
        return None
    account = account_of(owner)
    if account is None:
        raise ClusterError(f"{config.folder} belongs to uid {owner}, which has no account here: chown it.")
    return account


def _cluster(config: Config, account: Account | None) -> Cluster:
    tools = choose(config.major(), config.home / "pgtools")
    tools = readable(tools, account, config.folder / "binaries")
    return Cluster(tools.bin, config.data, config.run, account=account, library_path=tools.library_path)


def _bring_up(config: Config, account: Account | None, known: Connection | None) -> Connection:
    cluster = _cluster(config, account)
    if account is not None:
        _own(config, account)
    password = read_superuser(config) or _new_superuser(config, cluster)
    if not cluster.initialised:
        cluster.init(SUPERUSER, password, settings=SETTINGS)
    port = _start(cluster, known.port if known else free_port())
    own_password = known.password if known else secrets.token_urlsafe(24)
    answer = Connection(str(cluster.run), port, ROLE, own_password, DATABASE)
    _prepare(Connection(answer.host, port, SUPERUSER, password, "postgres"), answer, config)
    if answer != known:
        write_record(config, answer)
    return answer


def _own(config: Config, account: Account) -> None:
    for folder in (config.data, config.run, config.folder / "log"):
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid != account.uid:
            hand_over(folder, account)


def _new_superuser(config: Config, cluster: Cluster) -> str:
    """A password for the superuser; one that was lost is replaced in the stopped server."""
    password = secrets.token_urlsafe(24)
    if cluster.initialised:
        cluster.stop("fast")
        cluster.set_password(SUPERUSER, password)
    write_private(config, config.superuser, password + "\n")
    return password


def _start(cluster: Cluster, port: int) -> int:
    """Start on that port or, when somebody took it, on another; returns the port it has."""
    for _ in range(PORT_ATTEMPTS):
        try:
            cluster.start(port)
        except PortTaken:
            port = free_port()
        else:
            return cluster.port or port
    raise ClusterError(f"PostgreSQL in {cluster.data} found its port taken {PORT_ATTEMPTS} times in a row.")


def _prepare(owner: Connection, own: Connection, config: Config) -> None:
    """Make the application's role and database as they have to be, whatever was there before."""
    role, database = sql.Identifier(own.user), sql.Identifier(own.dbname)
    try:
        with psycopg.connect(
            host=owner.host,
            port=owner.port,
            user=owner.user,
            password=owner.password,
            dbname=owner.dbname,
            autocommit=True,
        ) as conn:
            encrypted = conn.pgconn.encrypt_password(
                own.password.encode(), own.user.encode(), b"scram-sha-256"
            )
            if not conn.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [own.user]).fetchone():
                conn.execute(sql.SQL("CREATE ROLE {}").format(role))
            rights = sql.SQL("ALTER ROLE {} LOGIN CREATEDB NOSUPERUSER PASSWORD {}")
            conn.execute(rights.format(role, sql.Literal(encrypted.decode())))
            if not conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", [own.dbname]).fetchone():
                conn.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, role))
            conn.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    except psycopg.Error as error:
        raise ClusterError(
            f"The embedded server in {config.folder} runs but could not be prepared: {error}. If it refuses "
            f"the superuser's password, remove {config.superuser}: a new one is set at the next start."
        ) from error
