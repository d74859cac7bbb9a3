"""Which processes of this machine serve a data directory, and clearing away what a killed server left.

PostgreSQL trusts the number in postmaster.pid: while any process of the same account has it, be it a stranger
or an unreaped zombie, the server refuses to start. And backends that outlive a killed server keep the new
one out. So a process is asked what it is before it is believed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .accounts import Account

PROC = Path("/proc")
ORPHAN_SECONDS = 10.0


@dataclass(frozen=True)
class PidFile:
    """What a server wrote into postmaster.pid. `port` and `sockets` are 0 and "" while it is starting."""

    pid: int
    port: int
    sockets: str


def read_pid_file(data: Path) -> PidFile | None:
    """None when there is no such file or it is not complete enough to name a process."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return None
    lines += [""] * (5 - len(lines))
    if not lines[0].strip().isdigit():
        return None
    port = lines[3].strip()
    return PidFile(int(lines[0]), int(port) if port.isdigit() else 0, lines[4].strip())


def serves(pid: int, data: Path, account: Account | None) -> bool:
    """Is that process alive (no zombie) and a PostgreSQL process working in `data`?"""
    if PROC.is_dir():
        return pid in _working_in(data, account, [pid])
    state, _, command = _ask_ps(pid).partition(" ")
    return bool(state) and not state.startswith("Z") and f"-D {data.resolve()}" in command


def clear_leftovers(data: Path, run: Path, account: Account | None) -> list[int]:
    """After the server of `data` is known to be dead: end its orphans, drop lock files strangers keep alive.

    Returns the orphans that could not be ended within ORPHAN_SECONDS. Lock files whose process is gone stay:
    PostgreSQL judges those itself, and with them whether shared memory is still in use.
    """
    deadline = time.monotonic() + ORPHAN_SECONDS
    while orphans := _working_in(data, account, _all_pids()):
        if time.monotonic() > deadline:
            return sorted(orphans)
        for pid in orphans:
            # A crash recovery follows anyway, and a stopped or busy orphan would ignore anything gentler.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    for lock in [data / "postmaster.pid", *run.glob(".s.PGSQL.*.lock")]:
        _drop_if_held_by_stranger(lock)
    return []


def _drop_if_held_by_stranger(lock: Path) -> None:
    with suppress(OSError, ValueError):
        pid = abs(int(lock.read_text(errors="replace").split("\n", 1)[0]))  # negative: single-user mode
        if _exists(pid):
            lock.unlink()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _working_in(data: Path, account: Account | None, pids: Iterable[int]) -> set[int]:
    """Those of `pids` that are live PostgreSQL processes of the account and have `data` as working folder."""
    uid = os.geteuid() if account is None else account.uid
    candidates = [pid for pid in pids if _is_postgres_of(pid, uid)]
    folder = str(data.resolve())
    return {pid for pid, where in _working_folders(candidates, account) if where == folder}


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()] if PROC.is_dir() else []


def _is_postgres_of(pid: int, uid: int) -> bool:
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
        owner = (PROC / str(pid)).stat().st_uid
    except OSError:
        return False
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name.startswith("postgres") and owner == uid and rest.split()[0] not in ("Z", "X")


def _working_folders(pids: list[int], account: Account | None) -> Iterator[tuple[int, str]]:
    refused = []
    for pid in pids:
        try:
            yield pid, os.readlink(PROC / str(pid) / "cwd")
        except PermissionError:
            refused.append(pid)
        except OSError:
            continue
    if refused and account is not None:
        yield from _ask_as(account, refused)


def _ask_as(account: Account, pids: list[int]) -> Iterator[tuple[int, str]]:
    """In a container root may not look into another account's processes; the account itself may."""
    script = 'for p; do printf "%s %s\\n" "$p" "$(readlink "/proc/$p/cwd")"; done'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *map(str, pids)],
        user=account.uid,
        group=account.gid,
        extra_groups=[account.gid],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        pid, _, where = line.partition(" ")
        yield int(pid), where


def _ask_ps(pid: int) -> str:
    """State and command line of a process where there is no /proc (macOS); "" when it does not exist."""
    done = subprocess.run(
        ["ps", "-ww", "-o", "stat=,command=", "-p", str(pid)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()
