"""Making accounts takes root; collected for root only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgbr import accounts
from pgbr.accounts import STRANGER, Account, AccountError, admit, can_reach, find_account

from .conftest import output_of, python


@pytest.fixture
def name() -> Iterator[str]:
    """The name of an account that does not exist; what is made under it is removed."""
    name = f"pgbr-t{os.getpid()}"
    yield name
    if find_account(name):
        subprocess.run(["userdel", name], check=True, capture_output=True)


@pytest.fixture
def nobody() -> Account:
    account = find_account("nobody")
    assert account is not None
    return account


def test_missing_account_is_made_once_by_many_processes_at_once(name: str) -> None:
    code = "import sys; from pgbr import accounts; print(accounts.server_account(sys.argv[1]).uid)"
    uids = {output_of(process) for process in [python(code, name) for _ in range(6)]}
    found = find_account(name)
    assert found is not None
    assert uids == {str(found.uid)}
    assert (
        len([line for line in Path("/etc/passwd").read_text().splitlines() if line.startswith(f"{name}:")])
        == 1
    )


def test_account_is_a_system_account_that_cannot_log_in(name: str) -> None:
    made = accounts.server_account(name)
    assert made is not None
    entry = subprocess.run(["getent", "passwd", name], check=True, capture_output=True, text=True).stdout
    assert entry.strip().endswith(("/nologin", "/false"))
    assert 0 < made.uid < 1000
    assert made.groups() == {made.gid}


def test_account_with_uid_0_is_refused() -> None:
    with pytest.raises(AccountError, match="uid 0"):
        accounts.server_account("root")


def test_account_that_cannot_be_made_says_how_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "CREATE_SECONDS", 0.0)
    with pytest.raises(AccountError, match="useradd --system"):
        accounts.server_account("not a name")


@pytest.mark.parametrize(
    ("mode", "reached"), [(0o755, True), (0o711, True), (0o750, False), (0o700, False), (0o754, False)]
)
def test_reaching_follows_the_modes_of_all_folders_above(
    place: Path, nobody: Account, mode: int, reached: bool
) -> None:
    file = place / "above" / "folder" / "file"
    file.parent.mkdir(parents=True)
    file.touch(mode=0o644)
    (place / "above").chmod(mode)
    assert can_reach(nobody, file) is reached
    assert can_reach(STRANGER, file) is reached
    assert can_reach(None, file)
    assert can_reach(nobody, place / "above" / "not" / "yet") is reached
    (place / "link").symlink_to(file)
    assert can_reach(nobody, place / "link") is reached


def test_reaching_counts_owner_and_group(place: Path, nobody: Account) -> None:
    file = place / "file"
    file.touch()
    for mode, uid, gid, reached in [
        (0o640, 0, nobody.gid, True),
        (0o600, nobody.uid, 0, True),
        (0o044, nobody.uid, 0, False),  # an owner has the owner's rights only
        (0o640, 0, 0, False),
    ]:
        os.chown(file, uid, gid)
        file.chmod(mode)
        assert can_reach(nobody, file) is reached


def test_private_folder_is_opened_for_the_account_alone(place: Path, nobody: Account) -> None:
    place.chmod(0o700)
    admit(nobody, place)
    found = place.stat()
    assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o710, 0, nobody.gid)
    assert not can_reach(STRANGER, place)


def test_folder_of_others_or_above_is_never_opened(place: Path, nobody: Account) -> None:
    inner = place / "inner"
    inner.mkdir(mode=0o700)
    place.chmod(0o700)
    with pytest.raises(AccountError, match=rf"chmod o\+x {place}`"):
        admit(nobody, inner)
    place.chmod(0o755)
    inner.chmod(0o750)
    with pytest.raises(AccountError, match=rf"chmod o\+x {inner}`"):
        admit(nobody, inner)
    assert inner.stat().st_mode & 0o777 == 0o750
