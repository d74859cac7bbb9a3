from __future__ import annotations

import pytest

from jobs.models import Storage
from schedules import prune
from tests.schedules.conftest import MakeSchedule, ago, fresh

from .conftest import Backup, objects, remaining

pytestmark = pytest.mark.django_db


def test_what_the_policy_gives_up_is_deleted_with_its_history(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage
) -> None:
    schedule = make_schedule(keep_last=2)
    made = [backup(schedule, ago(days=days)) for days in (4, 3, 2, 1)]
    assert prune.prune(schedule) == 2
    assert remaining() == {made[2].id, made[3].id}
    assert objects(storage) == {str(made[2].id), str(made[3].id)}
    assert fresh(schedule).retention_error is None
    assert fresh(schedule).pruned_at
