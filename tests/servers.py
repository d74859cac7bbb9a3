"""Throw-away PostgreSQL servers of several majors for the whole test run.

A server is started when a test first asks for its major and is shared by all processes of the run, which
find it by the environment. `close` ends them all; what a killed run left is swept by the next one.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from jobs.pgtools import binaries
from jobs.pgtools.errors import NoClientTools
from pgbr.accounts import STRANGER, can_reach, hand_over, server_account
from pgbr.cluster import Cluster, PortTaken
from pgbr.ports import free_port

MAJORS = (14, 15, 16, 17, 18)
SUPERUSER = "postgres"
APP = "app"
# May create databases and give them to APP; nothing else.
RESTORER = "restorer"
# Everything that a URL, a .pgpass file, a conninfo string or a shell would trip over.
PASSWORDS = {SUPERUSER: "super \\ $ecret", APP: "p@ss:w\\rd /%41 'x'", RESTORER: "re:storer"}
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
CHECKOUT = Path(__file__).resolve().parent.parent
SESSION = "TEST_RUN_SERVERS"
PREFIX = "pgbr-s-"


class TestServer:
    """One server: clients reach it at 127.0.0.1:`port` or through the socket in `host`."""

    __test__ = False

    def __init__(self, major: int, cluster: Cluster, version: tuple[int, int]) -> None:
        self.major = major
        self.version = version
        self.cluster = cluster
        self.port = cluster.port or 0

    @property
    def host(self) -> str:
        """The folder of its socket."""
        return str(self.cluster.run)

    def url(self, dbname: str, user: str = APP, password: str | None = None) -> str:
        """A URL over TCP; the password may be left out for the roles of PASSWORDS."""
        secret = PASSWORDS[user] if password is None else password
        credentials = f"{quote(user, safe='')}:{quote(secret, safe='')}"
        return f"postgresql://{credentials}@127.0.0.1:{self.port}/{quote(dbname, safe='')}"

    def superuser_url(self, dbname: str = "postgres") -> str:
        return self.url(dbname, SUPERUSER)

    def create_database(self, name: str, owner: str = APP) -> str:
        """A new database that belongs to a role without privileges; returns that role's URL."""
        # Nobody can be in template0, and so in the way; tests of other processes may look into template1.
        statement = "CREATE DATABASE {} OWNER {} TEMPLATE template0"
        self.execute(sql.SQL(statement).format(sql.Identifier(name), sql.Identifier(owner)))
        return self.url(name, owner, None if owner in PASSWORDS else "")

    def drop_database(self, name: str) -> None:
        """Drop it, ending whoever is connected; fine when it is gone."""
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def execute(self, statement: sql.SQL | sql.Composed, dbname: str = "postgres") -> None:
        """Run one statement as the superuser, outside a transaction."""
        with psycopg.connect(self.superuser_url(dbname), autocommit=True) as conn:
            conn.execute(statement)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; for a test that has the server to itself (see `private`)."""
        self.cluster.stop(mode)

    def start(self) -> None:
        """Start it again on the port it had."""
        self.cluster.start(self.port)


def get(major: int) -> TestServer:
    """The run's server of that major; started by whoever asks first."""
    return _server(major, _session() / str(major))


def private(major: int) -> TestServer:
    """A server of one's own, for tests that stop it or change its settings; `discard` it after use."""
    return _server(major, Path(tempfile.mkdtemp(prefix=f"{major}-", dir=_session())))


def discard(server: TestServer) -> None:
    server.stop()
    shutil.rmtree(server.cluster.data.parent, ignore_errors=True)


def cache() -> Path:
    """Where downloaded programs and empty data directories are kept between runs."""
    given = os.environ.get("PGBR_TEST_CACHE")
    if given:
        return Path(given).absolute()
    inside = CHECKOUT / "var" / "pgtools"
    if os.geteuid() != 0 or can_reach(STRANGER, inside):
        return inside
    return Path("/var/tmp") / f"pgbr-tests-{sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]}"


def open_session() -> Path:
    """Begin a run: what this process and its children start ends with `close`, at the latest at exit."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    folder.chmod(0o711)
    os.environ[SESSION] = str(folder)
    atexit.register(close)
    return folder


def close() -> None:
    """End all servers of the run and remove what they wrote; only the process that began it does."""
    folder = Path(os.environ.get(SESSION, ""))
    if folder.name.startswith(f"{PREFIX}{os.getpid()}-"):
        del os.environ[SESSION]
        _end(folder)


def _end(folder: Path) -> None:
    for data in folder.glob("*/data"):
        try:
            tools = binaries.probe(Path((data.parent / "binaries").read_text()))
        except NoClientTools:  # its checkout is gone, and with it the tools that would stop it gently
            _kill(data)
        else:
            _cluster(tools, data.parent).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def _kill(data: Path) -> None:
    with suppress(OSError, ValueError, IndexError):
        pid = int((data / "postmaster.pid").read_text().splitlines()[0])
        if os.readlink(f"/proc/{pid}/cwd") == str(data):
            os.kill(pid, signal.SIGQUIT)


def _session() -> Path:
    known = os.environ.get(SESSION)
    return Path(known) if known and Path(known).is_dir() else open_session()


def _sweep() -> None:
    """End the servers of runs whose process is gone without having closed them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(ValueError, OSError):
            if folder.stat().st_uid == os.geteuid() and not _alive(int(folder.name.split("-")[2])):
                _end(folder)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _server(major: int, folder: Path) -> TestServer:
    tools = binaries.install(major, cache())
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    with _locked(folder / "lock"):
        (folder / "binaries").write_text(str(tools.bin))
        cluster = _cluster(tools, folder)
        fresh = not cluster.initialised
        if fresh:
            _from_template(cluster, tools)
        while not cluster.running():
            with suppress(PortTaken):
                cluster.start(free_port())
        server = TestServer(major, cluster, tools.version)
        if fresh:
            _make_app(server)
        return server


def _cluster(tools: binaries.Toolset, folder: Path) -> Cluster:
    data, run = folder / "data", folder / "run"
    return Cluster(tools.bin, data, run, account=server_account(), library_path=tools.library_path)


def _from_template(cluster: Cluster, tools: binaries.Toolset) -> None:
    """A copy of an empty data directory, which takes a tenth of the time that initdb takes."""
    key = sha256(repr((tools.bin, tools.version, PASSWORDS, SETTINGS, cluster.account)).encode()).hexdigest()[
        :12
    ]
    folder = cache() / "templates" / f"{tools.label}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder.parent, folder):
        place.chmod(0o711)
    with _locked(folder / "lock"):
        template = _cluster(tools, folder)
        if not template.initialised:
            template.init(SUPERUSER, PASSWORDS[SUPERUSER], settings=SETTINGS)
    shutil.copytree(template.data, cluster.data)
    if cluster.account is not None:
        hand_over(cluster.data, cluster.account)


def _make_app(server: TestServer) -> None:
    for role, options in ((APP, "LOGIN"), (RESTORER, "LOGIN CREATEDB IN ROLE app")):
        statement = sql.SQL("CREATE ROLE {} WITH PASSWORD {} " + options)
        server.execute(statement.format(sql.Identifier(role), sql.Literal(PASSWORDS[role])))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
