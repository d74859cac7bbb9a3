"""The system account that a PostgreSQL server started by root runs under.

PostgreSQL refuses to run as root, so root lends it an account that owns nothing but the server's data. Anyone
else runs the server as themselves.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ACCOUNT_NAME = "pgbr"
CREATE_SECONDS = 5.0
NO_LOGIN = ("/usr/sbin/nologin", "/sbin/nologin")


class LocalServerError(Exception):
    """A server that pgbr runs itself cannot be had; the message names the object and the remedy."""


class AccountError(LocalServerError):
    """The server's own system account is missing, cannot be made, or cannot reach what it needs."""


@dataclass(frozen=True)
class Account:
    """A system account by name and numeric ids."""

    name: str
    uid: int
    gid: int

    def groups(self) -> frozenset[int]:
        """All group ids it belongs to."""
        return frozenset(os.getgrouplist(self.name, self.gid))


# Stands for "anyone at all": holds only what a path grants to others.
STRANGER = Account("", -1, -1)


def find_account(name: str = ACCOUNT_NAME) -> Account | None:
    """The account of that name, or None. Makes nothing."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def account_of(uid: int) -> Account | None:
    """The account with that uid, or None."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def server_account(name: str = ACCOUNT_NAME) -> Account | None:
    """Who a server that we start has to run as: None for ourselves, the dedicated account when we are root.

    The account is made if missing; any number of processes may ask at once. Raises AccountError.
    """
    if os.geteuid() != 0:
        return None
    account = find_account(name) or _create(name)
    if account.uid == 0:
        raise AccountError(f"The account {name} has uid 0, and PostgreSQL does not run as root: rename it.")
    return account


def can_reach(account: Account | None, path: Path) -> bool:
    """Can that account (None: ourselves) pass through all folders to `path`, and read it if it is a file?

    Judged by the modes of the resolved path; of one that does not exist yet, the part that does. Access
    control lists are not looked at.
    """
    path = path.resolve()
    while not os.path.lexists(path):
        path = path.parent
    needed = 0o1 if path.is_dir() else 0o4
    if account is None:
        return os.access(path, needed)
    groups = account.groups() if account.name else frozenset()
    return _granted(account, groups, path, needed) and all(
        _granted(account, groups, parent, 0o1) for parent in path.parents
    )


def admit(account: Account, folder: Path) -> None:
    """Let the account pass through (not list) `folder`, which we own, without opening it to anyone else.

    Only a folder whose group has no rights is changed: it gets the account's group. Raises AccountError when
    the account is still kept out, by the folder or by one above it.
    """
    for place in [*reversed(folder.resolve().parents), folder.resolve()]:
        if _granted(account, account.groups(), place, 0o1):
            continue
        mode = stat.S_IMODE(place.stat().st_mode)
        if place != folder.resolve() or mode & 0o070 or place.stat().st_uid != os.geteuid():
            raise AccountError(
                f"The account {account.name}, which runs PostgreSQL for root, cannot pass through {place}. "
                f"Run `chmod o+x {place}`, or set PGBR_HOME to a folder it can reach."
            )
        os.chown(place, -1, account.gid)
        place.chmod(mode | 0o010)


def hand_over(folder: Path, account: Account) -> None:
    """Make the account own a whole tree of ours, as when an image made anew gave it another number."""
    os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    for _, folders, files, descriptor in os.fwalk(folder):
        for name in [*folders, *files]:
            os.chown(name, account.uid, account.gid, dir_fd=descriptor, follow_symlinks=False)


def _granted(account: Account, groups: frozenset[int], path: Path, needed: int) -> bool:
    """Does the mode of `path` itself give the account all bits of `needed` (4 read, 1 pass)?"""
    try:
        found = path.stat()
    except PermissionError:
        return False
    if found.st_uid == account.uid:
        shift = 6
    elif found.st_gid in groups:
        shift = 3
    else:
        shift = 0
    return (found.st_mode >> shift) & needed == needed


def _create(name: str) -> Account:
    """Make the system account; one process at a time, since useradd itself lets two make it twice."""
    folder = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        deadline = time.monotonic() + CREATE_SECONDS
        while (account := find_account(name)) is None:
            complaint = _run_creators(name)
            if find_account(name):
                continue
            time.sleep(0.1)  # somebody else's tool may hold the account files
            if time.monotonic() > deadline:
                raise AccountError(
                    f"PostgreSQL does not run as root, and the account {name} for it could not be made: "
                    f"{complaint} Make it yourself (`useradd --system --user-group {name}`), or run pgbr as "
                    f"an ordinary user."
                )
        return account
    finally:
        os.close(folder)


def _run_creators(name: str) -> str:
    """Run the account tools this machine has; returns what they complained about."""
    shell = next((path for path in NO_LOGIN if Path(path).exists()), "/bin/false")
    if shutil.which("useradd", path=_tool_path()):
        home = ["--no-create-home", "--home-dir", "/nonexistent", "--shell", shell]
        commands = [["useradd", "--system", "--user-group", *home, name]]
    elif shutil.which("adduser", path=_tool_path()):
        home = ["-D", "-H", "-h", "/nonexistent", "-s", shell]
        commands = [["addgroup", "-S", name], ["adduser", "-S", *home, "-G", name, name]]
    else:
        return "there is neither useradd nor adduser here."
    complaint = ""
    for command in commands:
        done = subprocess.run(
            command,
            env={"PATH": _tool_path(), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        complaint = (done.stderr or done.stdout).strip() or complaint
    return complaint


def _tool_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
