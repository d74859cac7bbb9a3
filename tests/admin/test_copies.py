"""The copies on a backup's page: where they stand, what happens next, and to try one now."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from jobs.copying import copy_due
from jobs.models import ActivityEvent, BackupCopy, BackupJob, Storage
from tests.admin.conftest import Belongings

HOUR = timedelta(hours=1)


@pytest.fixture
def second(ada: Belongings, tmp_path: Path) -> BackupCopy:
    folder = str(tmp_path / "off")
    storage = Storage.objects.create(user=ada.user, name="off site", kind="folder", folder=folder)
    return BackupCopy.objects.create(
        backup=ada.backup, storage=storage, storage_key="shop/x.dump", is_first=False, next_attempt_at=Now()
    )


def page(ada: Belongings) -> str:
    return ada.client.get(f"/admin/jobs/backupjob/{ada.backup.pk}/change/").content.decode()


def press(ada: Belongings, copy: object, backup: BackupJob | None = None) -> Any:
    url = f"/admin/jobs/backupjob/{(backup or ada.backup).pk}/copy/"
    return ada.client.post(url, {"copy": str(copy)}, follow=True)


@pytest.mark.parametrize(
    ("columns", "texts", "button"),
    [
        ({}, ["waiting", "since"], True),
        (
            {"error": "is away", "next_attempt_at": HOUR},
            ["waiting", "is away", "in 60 minutes"],
            True,
        ),
        ({"claim_id": uuid.uuid4(), "next_attempt_at": HOUR}, ["being copied"], False),
        ({"claim_id": uuid.uuid4(), "next_attempt_at": -HOUR}, ["waiting"], True),
        (
            {"state": "failed", "attempts": 3, "error": "no room", "next_attempt_at": HOUR},
            ["failed 3 times", "no room", "Next try", "in 60 minutes"],
            True,
        ),
        ({"state": "failed", "error": "gone", "next_attempt_at": None}, ["failed", "gone"], True),
        ({"state": "deleting"}, ["deleting"], False),
        (
            {"state": "deleting", "attempts": 1, "error": "no", "next_attempt_at": HOUR},
            ["deleting, tried once", "Next try"],
            False,
        ),
        ({"state": "good", "verified_at": timezone.now()}, ["good", "Verified"], False),
    ],
)
def test_each_state_is_told_with_what_happens_next(
    ada: Belongings, second: BackupCopy, columns: dict[str, Any], texts: list[str], button: bool
) -> None:
    now = timezone.now()
    at = {name: now + value if isinstance(value, timedelta) else value for name, value in columns.items()}
    BackupCopy.objects.filter(id=second.id).update(**at)
    shown = page(ada).split(">off site<", 1)[1]
    assert [text for text in texts if text not in shown] == []
    assert ("Try now" in shown) is button


def test_in_the_trash_nothing_is_tried(ada: Belongings, second: BackupCopy) -> None:
    BackupJob.objects.filter(id=ada.backup.id).update(trashed_at=Now())
    shown = page(ada)
    assert "not made while the backup is in the trash" in shown
    assert "Try now" not in shown


def test_try_now_makes_it_the_next_one(ada: Belongings, second: BackupCopy) -> None:
    BackupCopy.objects.filter(id=second.id).update(
        state="failed", attempts=5, next_attempt_at=timezone.now() + HOUR
    )
    assert copy_due() == 0
    assert "The copy in off site is made next" in press(ada, second.id).content.decode()
    assert copy_due() == 1
    assert ActivityEvent.objects.get(action="copy").detail == {"storage": "off site"}
    assert "or good" in press(ada, second.id).content.decode()


def test_what_is_being_copied_is_left_alone(ada: Belongings, second: BackupCopy) -> None:
    held = {"claim_id": uuid.uuid4(), "next_attempt_at": timezone.now() + HOUR}
    BackupCopy.objects.filter(id=second.id).update(**held)
    assert "is being copied" in press(ada, second.id).content.decode()
    second.refresh_from_db()
    assert second.claim_id == held["claim_id"]


def test_others_copies_are_out_of_reach(ada: Belongings, eve: Belongings, second: BackupCopy) -> None:
    BackupCopy.objects.filter(id=second.id).update(next_attempt_at=None)
    assert press(eve, second.id, ada.backup).status_code == 404
    assert press(eve, second.id).status_code == 404
    assert press(ada, "nonsense").status_code == 404
    second.refresh_from_db()
    assert second.next_attempt_at is None


def test_a_backup_that_lies_only_here_says_so(ada: Belongings) -> None:
    assert "The only copy (in &#x27;store-ada&#x27;) lies on the machine that pgbr runs on" in page(ada)
