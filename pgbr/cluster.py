"""One PostgreSQL server of our own: a data directory, a socket directory, and the process between them.

It asks for a password (scram) on every connection, listens on its socket and on 127.0.0.1 only, and outlives
whoever started it. Callers see to it that one process at a time inits, starts or stops a cluster.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from psycopg import conninfo, pq

from . import postmaster
from .accounts import Account
from .ports import port_is_free
from .server_tools import ClusterError, ServerTools, complaint

# A socket's path may have 107 bytes on Linux and 103 on macOS; its name takes 15 of them.
RUN_PATH_BYTES = 88
START_SECONDS = 300.0
STOP_SECONDS = 120
LOCALES = ("C.UTF-8", "C")


class PortTaken(ClusterError):
    """Somebody else listens on the port this server was to use."""


def accepts(host: str | Path, port: int) -> bool:
    """Does a server there take connections now? Not while it recovers or shuts down. Sends no password."""
    target = conninfo.make_conninfo(host=str(host), port=port, user="pgbr", dbname="pgbr", connect_timeout=5)
    return pq.PGconn.ping(target.encode()) == pq.Ping.OK


class Cluster:
    """A server by its folders.

    `binaries` holds initdb, pg_ctl and postgres, `library_path` what libraries they need beside the system's.
    `account` is who it runs as (None: ourselves), see accounts.server_account. Logs go to `log` beside
    `data`.
    """

    def __init__(
        self,
        binaries: Path,
        data: Path,
        run: Path,
        *,
        account: Account | None,
        library_path: Path | None = None,
    ) -> None:
        self.tools = ServerTools(binaries, library_path)
        self.data = data.resolve()
        self.run = _nameable(run.resolve(), account)
        self.log = self.data.parent / "log"
        self.account = account

    @property
    def initialised(self) -> bool:
        """Is there a finished data directory?"""
        return (self.data / "PG_VERSION").is_file()

    def pid(self) -> int | None:
        """The server's process, or None when it does not run (a zombie does not)."""
        found = postmaster.read_pid_file(self.data)
        return found.pid if found and postmaster.serves(found.pid, self.data, self.account) else None

    def running(self) -> bool:
        """Does the server's process exist? It may still be starting up."""
        return self.pid() is not None

    @property
    def port(self) -> int | None:
        """The port the server wrote down when it last started, None before it did."""
        found = postmaster.read_pid_file(self.data)
        return (found.port or None) if found else None

    def accepts(self) -> bool:
        """Does the server take connections on its socket, wherever its process lives?"""
        return self.port is not None and accepts(self.run, self.port)

    def init(self, superuser: str, password: str, *, settings: Mapping[str, str] | None = None) -> None:
        """Make the data directory with its superuser and with lines for postgresql.conf.

        It gets its name only when it is complete, so a killed run leaves nothing that looks like one.
        Encoding UTF8, locale C.UTF-8 (C where the system lacks it), checksums on. Raises ClusterError.
        """
        if self.data.exists() and (not self.data.is_dir() or any(self.data.iterdir())):
            raise ClusterError(
                f"{self.data} is there and not empty; nothing was touched. Move it away first."
            )
        self._sweep_staging()
        try:
            self.data.parent.mkdir(parents=True, exist_ok=True)
            staging = Path(tempfile.mkdtemp(prefix=f"{self.data.name}.init-", dir=self.data.parent))
            try:
                self._give(staging)
                self._initdb(staging, superuser, password, settings or {})
                (staging / "data").rename(self.data)
                _sync(self.data.parent)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        except OSError as error:
            raise ClusterError(f"The data directory {self.data} could not be made: {error}") from error

    def start(self, port: int, *, timeout: float = START_SECONDS) -> None:
        """Start the server and wait until it takes connections, a crash recovery included; seconds.

        A running one is waited for and keeps its port: read `port` afterwards. Raises PortTaken, or
        ClusterError with the end of the log.
        """
        deadline = time.monotonic() + timeout
        if not self.running() and not self.accepts():
            self._launch(port, timeout)
        while not self.accepts():
            if not self.running():
                raise ClusterError(f"PostgreSQL in {self.data} ended while starting: {self.log_tail()}")
            if time.monotonic() > deadline:
                late = f"took no connection within {timeout:.0f} s"
                raise ClusterError(f"PostgreSQL in {self.data} {late}: {self.log_tail()}")
            time.sleep(0.02)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server ("smart", "fast" or "immediate") and wait for its end; fine when none runs.

        Raises ClusterError, also when the server runs where we cannot see it (another container).
        """
        if self.running():
            wait = ["-w", "-t", str(STOP_SECONDS)]
            done = self._run("pg_ctl", "stop", "-D", str(self.data), "-m", mode, *wait)
            if done.returncode != 0 and self.running():
                raise ClusterError(f"PostgreSQL in {self.data} did not stop ({mode}): {complaint(done)}")
        elif self.accepts():
            raise ClusterError(
                f"PostgreSQL in {self.data} runs in another container or machine: stop it there."
            )
        self._clear_leftovers()

    def set_password(self, role: str, password: str) -> None:
        """Give a role a new password while the server is stopped, without knowing the old one."""
        statement = "ALTER ROLE {} PASSWORD '{}';\n".format(
            '"' + role.replace('"', '""') + '"', password.replace("'", "''")
        )
        self._clear_leftovers()
        done = self._run("postgres", "--single", "-D", str(self.data), "postgres", stdin=statement)
        if done.returncode != 0 or "ERROR:" in done.stderr:
            raise ClusterError(
                f"The password of {role} in {self.data} could not be set: exit {done.returncode}."
            )

    def log_tail(self) -> str:
        """The last lines of the newest logs, empty when there are none."""
        logs = sorted(self.log.glob("*.log"), key=lambda path: path.lstat().st_mtime)
        parts = []
        for path in logs[-2:]:
            with suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
                stream.seek(max(0, path.lstat().st_size - 2000))
                parts.append(stream.read().decode(errors="replace").strip())
        return "\n".join(part for part in parts if part)

    def _launch(self, port: int, timeout: float) -> None:
        self._sweep_staging()
        self._clear_leftovers()
        for folder in (self.run, self.log):
            self._make_folder(folder)
        start_log = self.log / "start.log"
        start_log.unlink(missing_ok=True)
        wait = ["-w", "-t", str(int(timeout))]
        target = ["-D", str(self.data), "-l", str(start_log), "-o", self._options(port)]
        done = self._run("pg_ctl", "start", *target, *wait, timeout=timeout + 10)
        if done.returncode == 0 or self.running():
            return
        if not port_is_free(port):
            raise PortTaken(f"Port {port} of 127.0.0.1 is taken, so PostgreSQL in {self.data} cannot use it.")
        raise ClusterError(f"PostgreSQL in {self.data} did not start: {complaint(done)} {self.log_tail()}")

    def _options(self, port: int) -> str:
        options = {
            "port": str(port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": '"' + str(self.run).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
        }
        return " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in options.items())

    def _clear_leftovers(self) -> None:
        stuck = postmaster.clear_leftovers(self.data, self.run, self.account)
        if stuck:
            raise ClusterError(
                f"Processes {stuck} of an earlier server still use {self.data} and cannot be ended; most "
                f"likely they wait for a disk. Nothing was started: mend that or restart the machine."
            )

    def _sweep_staging(self) -> None:
        for leftover in self.data.parent.glob(f"{self.data.name}.init-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _initdb(self, staging: Path, superuser: str, password: str, settings: Mapping[str, str]) -> None:
        """Fill staging/data; the password travels in a file that only the account may open."""
        password_file = staging / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(password + "\n", encoding="utf-8")
        self._give(password_file)
        target = staging / "data"
        fixed = ["-D", str(target), f"--username={superuser}", f"--pwfile={password_file}"]
        fixed += ["--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums"]
        fixed += ["--no-sync"] if settings.get("fsync") == "off" else []
        for locale in LOCALES:
            done = self._run("initdb", *fixed, f"--locale={locale}")
            if done.returncode == 0 or "locale" not in done.stderr:
                break
            shutil.rmtree(target, ignore_errors=True)
        password_file.unlink()
        if done.returncode != 0:
            raise ClusterError(f"initdb could not make {self.data}: {complaint(done)}")
        with (target / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.writelines(
                "{} = '{}'\n".format(name, settings[name].replace("'", "''")) for name in settings
            )
            conf.flush()
            os.fsync(conf.fileno())

    def _run(
        self, program: str, *arguments: str, stdin: str = "", timeout: float = START_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        return self.tools.run(program, *arguments, account=self.account, stdin=stdin, timeout=timeout)

    def _make_folder(self, folder: Path) -> None:
        """A private folder of the server's account; under /tmp nobody else's will do."""
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
            self._give(folder)
        owner = self.account.uid if self.account else os.geteuid()
        if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != owner:
            raise ClusterError(
                f"{folder} has to be a folder that belongs to uid {owner}: remove or chown it."
            )
        folder.chmod(0o700)

    def _give(self, path: Path) -> None:
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid, follow_symlinks=False)


def _nameable(run: Path, account: Account | None) -> Path:
    """`run`, or a folder with a short name for it where a client could not name a socket there.

    A socket's path has a limit, and libpq takes a comma for the end of a host.
    """
    if len(os.fsencode(run)) <= RUN_PATH_BYTES and "," not in str(run):
        return run
    short = f"pgbr-{hashlib.sha256(os.fsencode(run)).hexdigest()[:12]}"
    return Path("/run" if account is not None and Path("/run").is_dir() else "/tmp") / short  # noqa: S108


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
