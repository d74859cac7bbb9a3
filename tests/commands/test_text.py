from __future__ import annotations

import pytest

from jobs.management import text


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_400, "999 kB"),
        (999_500, "1.0 MB"),
        (154_000_000, "154 MB"),
        (1_400_000_000, "1.4 GB"),
        (5_000_000_000_000, "5.0 TB"),
    ],
)
def test_sizes(number: int | None, words: str) -> None:
    assert text.size(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1m 00s"),
        (192, "3m 12s"),
        (7500, "2h 05m"),
    ],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert text.duration(seconds) == words


def test_what_comes_from_outside_stays_one_harmless_line() -> None:
    assert text.printable("a\nb\x1b[2J\tc") == "a b\\x1b[2J c"


def test_columns_are_as_wide_as_their_cells() -> None:
    assert text.columns(("A", "B"), [("long", "1"), ("x", "22")], right=[1]) == [
        "A      B",
        "long   1",
        "x     22",
    ]
