"""SECRET_KEY and ENCRYPTION_KEY for an instance on the embedded database: made once, kept under PGBR_HOME.

With a DATABASE_URL they are required from the environment: several machines must share them, and a key
made in a container that is thrown away would take every stored password with it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet


def made_once(home: Path, name: str) -> str:
    """The key `name` under `home`/keys, made on the first call (mode 0600); safe among processes."""
    folder = home / "keys"
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _give_to_owner(home, folder)
    path = folder / name
    with open(folder / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            key = Fernet.generate_key().decode() if name == "encryption" else secrets.token_urlsafe(50)
            _write(path, key)
            _give_to_owner(home, path)
    return path.read_text(encoding="ascii").strip()


def _give_to_owner(home: Path, path: Path) -> None:
    """Root working in another user's state folder leaves nothing there that this user could not read."""
    if os.geteuid() == 0:
        owner = home.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def _write(path: Path, key: str) -> None:
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
