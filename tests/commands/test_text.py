from __future__ import annotations

from jobs.management import text


def test_what_is_unknown_is_a_dash() -> None:
    assert (text.size(None), text.duration(None)) == ("-", "-")
    assert (text.size(154_000_000), text.duration(192)) == ("154 MB", "3m 12s")


def test_what_comes_from_outside_stays_one_harmless_line() -> None:
    assert text.printable("a\nb\x1b[2J\tc") == "a b\\x1b[2J c"


def test_columns_are_as_wide_as_their_cells() -> None:
    assert text.columns(("A", "B"), [("long", "1"), ("x", "22")], right=[1]) == [
        "A      B",
        "long   1",
        "x     22",
    ]
