"""What the embedded server keeps under PGBR_HOME/embedded, and who may touch it when.

data/ log/ run/    the server's own, in the name of the account it runs as
binaries/          copies of its programs, only where that account cannot read the originals
connection.json    how the application connects (mode 0600)
superuser          the password of the role postgres (mode 0600)
lock               held by whoever starts or stops the server
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from .accounts import STRANGER, Account, account_of, admit, can_reach
from .server_tools import ClusterError

LOCK_SECONDS = 600.0
STATE = ("embedded", "keys", "backups")


@dataclass(frozen=True)
class Connection:
    """How to reach a database of the embedded server. `host` is the folder of its socket."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    dbname: str

    @property
    def url(self) -> str:
        """The same over TCP, for any client on this machine; it holds the password."""
        secret = quote(self.password, safe="")
        return f"postgresql://{quote(self.user, safe='')}:{secret}@127.0.0.1:{self.port}/{quote(self.dbname)}"


@dataclass(frozen=True)
class Config:
    """The places below a PGBR_HOME."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "embedded"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def record(self) -> Path:
        return self.folder / "connection.json"

    @property
    def superuser(self) -> Path:
        return self.folder / "superuser"

    def major(self) -> int | None:
        """The PostgreSQL major of the data directory, None when there is none yet."""
        try:
            return int((self.data / "PG_VERSION").read_text().strip())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise foreign(self) from error

    def owner(self) -> int | None:
        """The uid of whoever made the state, None when there is none yet."""
        with suppress(FileNotFoundError):
            return self.folder.stat().st_uid
        return None


def default_home(checkout: Path) -> Path:
    """Where state lies unless PGBR_HOME says so: `var` in the checkout.

    For root it is /var/lib/pgbr-<8 hex of the path> when the server's account cannot pass through the
    checkout. State that is there already decides, so that a changed mode never shows an empty instance.
    """
    inside = checkout / "var"
    if os.geteuid() != 0:
        return inside
    digest = sha256(os.fsencode(checkout.resolve())).hexdigest()[:8]
    outside = Path(f"/var/lib/pgbr-{digest}")
    for home in (inside, outside):
        if any((home / name).exists() for name in STATE):
            return home
    return inside if can_reach(STRANGER, checkout) else outside


def read_record(config: Config) -> Connection | None:
    """What `write_record` wrote last, None when there is nothing usable. Raises ClusterError if forbidden."""
    try:
        return Connection(**json.loads(config.record.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None
    except PermissionError as error:
        raise foreign(config) from error


def write_record(config: Config, connection: Connection) -> None:
    write_private(config, config.record, json.dumps(asdict(connection)))


def read_superuser(config: Config) -> str | None:
    """The superuser's password, None when it was never written or is empty."""
    try:
        return config.superuser.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def write_private(config: Config, path: Path, text: str) -> None:
    """Replace a file below `config.folder` at once and for good; mode 0600, its owner the folder's."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=config.folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            give_to_owner(config, stream.fileno())
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def give_to_owner(config: Config, descriptor: int) -> None:
    """Root working for another user leaves nothing behind that this user could not open."""
    if os.geteuid() == 0:
        found = config.folder.stat()
        os.fchown(descriptor, found.st_uid, found.st_gid)


def make_folders(config: Config, account: Account | None) -> None:
    """Make PGBR_HOME and its `embedded`, and let the server's account pass through both."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    missing = [folder for folder in (config.folder, *config.folder.parents) if not folder.exists()]
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):
                folder.mkdir()
                folder.chmod(mode)
    except OSError as error:
        raise ClusterError(f"PGBR_HOME {config.home} cannot be made: {error}") from error
    if not os.access(config.folder, os.R_OK | os.W_OK | os.X_OK):
        raise foreign(config)
    if account is not None:
        admit(account, config.home)
        admit(account, config.folder)


def foreign(config: Config) -> ClusterError:
    """The error for state that belongs to somebody else."""
    owner = account_of(config.owner() or 0)
    return ClusterError(
        f"{config.folder} belongs to {owner.name if owner else f'uid {config.owner()}'}: run pgbr as that "
        f"user (or as root), or set PGBR_HOME to a folder of your own."
    )


@contextmanager
def locked(config: Config) -> Iterator[None]:
    """Be the only process that starts or stops the server. Raises ClusterError after LOCK_SECONDS."""
    descriptor = os.open(config.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        give_to_owner(config, descriptor)
        _wait_for(descriptor, config)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, config: Config) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"Another process has been starting or stopping the server in {config.folder} for "
                    f"{LOCK_SECONDS:.0f} s (it holds the file `lock` there): look at it and end it."
                ) from None
            time.sleep(0.02)
        else:
            return
