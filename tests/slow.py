"""Which tests a newcomer does not wait for: `make test` leaves them out, `make test-slow` and CI run them."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
SLOW = [
    "commands/test_demo.py",  # the whole of it, twice
    "commands/test_run.py",
    "copying/test_outage.py",
    "copying/test_workers.py",
    "embedded",  # servers that crash, are made and upgraded
    "memory",
    "processors/test_flags.py",  # every option of five majors
    "processors/test_restorable.py",
    "restoring/test_awkward.py",
    "restoring/test_bad_input.py",
    "restoring/test_bad_targets.py",
    "restoring/test_matrix.py",
    "schedules/retention",  # random histories, races
    "schedules/test_cron_year.py",
    "schedules/test_tick_workers.py",
    "storage/test_s3_outage.py",
    "worker",  # killed, frozen, cut off
]


def is_slow(path: Path) -> bool:
    return any(path.is_relative_to(HERE / each) for each in SLOW)
