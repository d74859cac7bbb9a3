"""Names of databases that lie aside."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.processors.at_target import names

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CASES = [
    ("shop", [], "shop_before_20260102_030405"),
    ("shop", ["shop_before_20260102_030405"], "shop_before_20260102_030405_2"),
    (
        "shop",
        ["shop_before_20260102_030405", "shop_before_20260102_030405_2"],
        "shop_before_20260102_030405_3",
    ),
    ("ä" * 31, [], "ä" * 20 + "_before_20260102_030405"),
    ("ä" * 31, ["ä" * 20 + "_before_20260102_030405"], "ä" * 19 + "_before_20260102_030405_2"),
]


@pytest.mark.parametrize(("name", "taken", "expected"), CASES)
def test_a_name_aside_is_free_and_fits(name: str, taken: list[str], expected: str) -> None:
    assert names.aside(name, "before", MOMENT, taken.__contains__) == expected
    assert len(expected.encode()) <= names.LONGEST
