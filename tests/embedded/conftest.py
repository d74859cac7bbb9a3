from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from pgbr import embedded, postmaster
from pgbr.accounts import Account, find_account
from pgbr.embedded import Connection

CHECKOUT = Path(__file__).resolve().parents[2]
# What only root does cannot be shown by anybody else.
collect_ignore = [] if os.geteuid() == 0 else ["test_as_root.py", "test_accounts.py"]


def make_place() -> Path:
    """An empty folder with a short name; in memory where that is large, for these servers sync to disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    usable = roomy and os.access(memory, os.W_OK) and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    folder = Path(tempfile.mkdtemp(prefix="pgbr-e-", dir=memory if usable else "/tmp"))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def place() -> Iterator[Path]:
    """A place of the test's own; servers below it are ended afterwards."""
    folder = make_place()
    yield folder
    for version in folder.rglob("data/PG_VERSION"):
        shut_down(version.parent)
        known = embedded.connection(version.parents[2])
        if known and not known.host.startswith(str(folder)):
            shutil.rmtree(known.host)
    shutil.rmtree(folder)


@pytest.fixture
def new_home(place: Path) -> Path:
    """A PGBR_HOME that does not exist yet."""
    return place / "home"


@pytest.fixture(scope="session")
def stopped_home() -> Iterator[Path]:
    folder = make_place()
    embedded.ensure(folder / "home")
    embedded.stop(folder / "home")
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def home(place: Path, stopped_home: Path) -> Path:
    """A PGBR_HOME whose server ran before, elsewhere, and is stopped."""
    return copy_home(stopped_home, place)


def copy_home(stopped: Path, place: Path) -> Path:
    subprocess.run(["cp", "-a", stopped, place / "home"], check=True)
    return place / "home"


def shut_down(data: Path) -> None:
    """End the server at once but orderly: a killed one leaves its shared memory to the machine."""
    found = postmaster.read_pid_file(data)
    if found and found.pid in working_in(data):
        kill(found.pid, signal.SIGQUIT)
        wait_until(lambda: not alive(found.pid))
    end_server(data)


def end_server(data: Path) -> None:
    """SIGKILL to every process that works in `data`, as a power cut would."""
    kill_all(working_in(data))


def working_in(data: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") == str(data.resolve()):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        kill(pid)
    for pid in pids:
        wait_until(lambda pid=pid: not alive(pid))  # type: ignore[misc]


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def state(pid: int) -> str:
    """The letter of /proc/<pid>/stat, "" when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def server_pid(home: Path) -> int:
    found = postmaster.read_pid_file(home / "embedded" / "data")
    assert found is not None
    return found.pid


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def connect(to: Connection, **changes: object) -> psycopg.Connection[tuple[object, ...]]:
    parts = {"host": to.host, "port": to.port, "user": to.user, "password": to.password, "dbname": to.dbname}
    return psycopg.connect(**(parts | changes), connect_timeout=10)  # type: ignore[arg-type]


def leave_row(to: Connection) -> None:
    with connect(to) as conn:
        conn.execute("CREATE TABLE kept (word text)")
        conn.execute("INSERT INTO kept VALUES ('here')")


def has_row(to: Connection) -> bool:
    with connect(to) as conn:
        return conn.execute("SELECT word FROM kept").fetchone() == ("here",)


def python(
    code: str, *arguments: object, prefix: tuple[str, ...] = (), path: Path = CHECKOUT
) -> subprocess.Popen[str]:
    """A process and session of its own that runs `code` in the checkout; `path` comes before its modules."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", code, *map(str, arguments)],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": str(path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def output_of(process: subprocess.Popen[str], seconds: float = 60) -> str:
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    return out.strip()


ENSURE = (
    "import sys, pathlib; from pgbr import embedded; print(embedded.ensure(pathlib.Path(sys.argv[1])).port)"
)


def ordinary_user() -> Account | None:
    """Somebody without privileges: ourselves, or for root the account `nobody`."""
    return find_account("nobody") if os.geteuid() == 0 else None


def as_user(account: Account | None, function: Callable[[], object]) -> object:
    """What `function` returns (as JSON) in a forked child that runs as the account, None: as ourselves.

    Forked, because the account may not be able to read this interpreter's files.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(account, function, writing)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    _, code = os.waitpid(child, 0)
    assert code == 0, text
    return json.loads(text)


def _answer(account: Account | None, function: Callable[[], object], writing: int) -> None:
    code, text = 1, ""
    try:
        if account is not None:
            os.setgroups([account.gid])
            os.setgid(account.gid)
            os.setuid(account.uid)
        code, text = 0, json.dumps(function())
    except BaseException:  # noqa: BLE001
        text = traceback.format_exc()
    finally:
        os.write(writing, text.encode())
        os._exit(code)
