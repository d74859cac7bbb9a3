"""Cron expressions in plain English."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from schedules.cron import CronError
from schedules.wording import in_words
from tests.schedules.test_cron_clocks import EXPRESSIONS


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * *", "At 02:30, every day"),
        ("5 14 * * *", "At 14:05, every day"),
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0 */6 * * *", "Every 6 hours"),
        ("0 2,14 * * *", "At 02:00 and 14:00, every day"),
        ("0 0 * * 7", "At 00:00, only on Sunday"),
        ("0 0 * * MON-fri", "At 00:00, Monday through Friday"),
        ("0 0 1 jan *", "At 00:00, on day 1 of the month, only in January"),
        ("@hourly", "Every hour"),
        ("@daily", "At 00:00, every day"),
        ("@Weekly", "At 00:00, only on Sunday"),
        ("@monthly", "At 00:00, on day 1 of the month"),
        ("@yearly", "At 00:00, on day 1 of the month, only in January"),
        # Either day will do.
        ("0 2 1 * mon-fri", "At 02:00, on day 1 of the month; also at 02:00, Monday through Friday"),
        ("0 2 1-31 * fri", "At 02:00, every day"),
        # Not said to be regular where the last step is shorter.
        ("*/25 * * * *", "At 0, 25, and 50 minutes past the hour"),
        ("0 3 */10 * *", "At 03:00, on day 1, 11, 21, and 31 of the month"),
        ("0 3 * * */2", "At 03:00, only on Sunday, Tuesday, Thursday, and Saturday"),
        ("5-5 2 * * *", "At 02:05, every day"),
        ("*/60 * * * *", "Every hour"),
    ],
)
def test_an_expression_in_words(expression: str, words: str) -> None:
    assert in_words(expression) == words


def test_it_is_english_on_every_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getlocale", lambda: ("de_DE", "UTF-8"))
    assert in_words("31 2 * * mon") == "At 02:31, only on Monday"


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(CronError, match="minute: 61 is out of range"):
        in_words("61 * * * *")


@settings(max_examples=150, deadline=None)
@given(expression=EXPRESSIONS)
def test_whatever_is_accepted_has_words(expression: str) -> None:
    assert in_words(expression)
