"""What was left out long ago is forgotten, batch by batch."""

from __future__ import annotations

import pytest
from django.conf import settings

from schedules import skips
from schedules.models import SkippedSlot
from tests.schedules.conftest import MakeSchedule, ago

pytestmark = pytest.mark.django_db


def test_skipped_slots_are_forgotten_after_ninety_days(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skips, "BATCH", 3)
    schedule = make_schedule()
    for days in (89, *range(91, 98)):
        SkippedSlot.objects.create(schedule=schedule, slot=ago(days=days), reason="…")

    assert skips.forget_old() == 7
    assert SkippedSlot.objects.get().slot > ago(days=90)
    assert "schedules.skips.forget_old" in {path for path, _, _ in settings.UPKEEP_DUTIES}
