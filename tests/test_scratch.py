"""Scratch folders of killed processes, whatever the moment in which they were killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from jobs import scratch


@pytest.fixture
def root(tmp_path: Path, settings: Settings) -> Path:
    settings.SCRATCH_FOLDER = tmp_path
    return tmp_path


def test_a_folder_in_use_stays_and_is_gone_afterwards(root: Path) -> None:
    with scratch.folder("backup-1") as folder:
        (folder / "passfile").write_text("secret")
        assert scratch.sweep_orphans() == 0
        assert folder.is_dir()
    assert list(root.iterdir()) == []


def test_killed_while_it_was_being_removed(root: Path) -> None:
    """Its lock may be what was removed first."""
    (root / "backup-1").mkdir()
    (root / "backup-1" / "passfile").write_text("secret")
    assert scratch.sweep_orphans() == 1
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("locked", [False, True])
def test_killed_before_it_had_its_name(root: Path, locked: bool) -> None:
    draft = root / ".new-backup-1"
    draft.mkdir()
    if locked:
        (draft / scratch.LOCK).touch()
    assert scratch.sweep_orphans() == 0
    old = time.time() - 2 * scratch.UNFINISHED_SECONDS
    os.utime(draft, (old, old))
    assert scratch.sweep_orphans() == 1
    assert list(root.iterdir()) == []


def test_a_folder_that_cannot_be_locked_is_not_left(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fcntl.flock", full)
    with pytest.raises(OSError, match="No space"), scratch.folder("backup-1"):
        pass
    assert list(root.iterdir()) == []
