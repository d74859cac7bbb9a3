from __future__ import annotations

import pytest

from dashboard import ranges


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-99", (0, 100)),
        ("bytes=10-", (10, 100)),
        ("bytes=90-1000", (90, 100)),
        ("bytes=-1", (99, 100)),
        ("bytes=-1000", (0, 100)),
        # Several parts, other units and nonsense are answered with the whole.
        ("bytes=0-1,5-6", None),
        ("bytes=5-4", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("lines=0-1", None),
        ("", None),
        ("bytes=" + "9" * 40 + "-", None),
    ],
)
def test_one_part_is_understood(header: str, expected: tuple[int, int] | None) -> None:
    assert ranges.parse(header, 100) == expected


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_what_lies_outside_cannot_be_satisfied(header: str) -> None:
    with pytest.raises(ranges.Unsatisfiable):
        ranges.parse(header, 100)
