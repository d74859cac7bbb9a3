from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.admin import formats

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, formats.NOTHING),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (15_300_000, "15.3 MB"),
        (154_000_000, "154 MB"),
        (999_999_999, "1.00 GB"),
        (1_250_000_000, "1.25 GB"),
        (5 * 10**12, "5.00 TB"),
        (10**19, "10000 PB"),
    ],
)
def test_sizes(count: int | None, shown: str) -> None:
    assert formats.size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, formats.NOTHING),
        (-3, "0.0s"),
        (0.42, "0.4s"),
        (12, "12s"),
        (59.7, "1m"),
        (192, "3m 12s"),
        (3600, "1h"),
        (7512, "2h 5m"),
        (86400 * 3 + 4 * 3600, "3d 4h"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert formats.duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "just now"),
        (-10, "in a moment"),
        (50, "1 minute ago"),
        (300, "5 minutes ago"),
        (3599, "59 minutes ago"),
        (7200, "2 hours ago"),
        (-7200, "in 2 hours"),
        (60 - 86400 * 7, "in 7 days"),
        (86400 * 45, "1 month ago"),
        (86400 * 800, "2 years ago"),
    ],
)
def test_ages(seconds: int, shown: str) -> None:
    assert formats.age(NOW - timedelta(seconds=seconds), NOW) == shown


def test_a_time_has_the_exact_one_on_hover() -> None:
    assert 'title="2026-03-04 12:00:00 UTC"' in formats.when(NOW)
    assert formats.when(None) == formats.NOTHING


def test_a_status_is_colour_and_icon_and_word_and_escaped() -> None:
    badge = formats.status("failed", "<b>")
    assert "badge-failed" in badge
    assert formats.ICONS["failed"] in badge
    assert "&lt;b&gt;" in badge
    assert "badge-pending" in formats.status('"><script>')
