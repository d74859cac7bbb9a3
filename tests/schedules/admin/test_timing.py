from __future__ import annotations

from typing import Any

import pytest

from schedules.admin.timing import TimingForm, initial_of
from schedules.models import Schedule
from tests.admin.conftest import Belongings
from tests.schedules.admin.conftest import ADD, LIST, form_of, step_of

READING = f"{LIST}reading/"
DAILY = {"preset": "daily", "time": "02:30", "timezone": "Europe/Berlin"}


def reading(ada: Belongings, **fields: Any) -> str:
    return ada.client.get(READING, fields).content.decode().replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("expression", "preset"),
    [
        ("15 * * * *", "hourly"),
        ("0 0 * * *", "daily"),
        ("5 23 * * 0,1,6", "weekly"),
        ("5 23 31 * *", "monthly"),
        ("05 2 * * *", "custom"),
        ("5 2 * * 1,0", "custom"),
        ("5 2 * * 7", "custom"),
        ("5 2 * * mon", "custom"),
        ("5 2 1 1 *", "custom"),
        ("5 2 1 * 1", "custom"),
        ("5 * 1 * *", "custom"),
        ("* * * * *", "custom"),
        ("*/5 2 * * *", "custom"),
        ("61 2 * * *", "custom"),
        ("@daily", "custom"),
        ("nonsense", "custom"),
        ("", "custom"),
    ],
)
def test_an_expression_opens_as_the_preset_that_says_the_very_same(expression: str, preset: str) -> None:
    initial = initial_of(expression, "UTC")
    assert initial["preset"] == preset
    form = TimingForm(initial=initial).judged()
    if form.is_valid():
        assert form.cleaned_data["expression"] == expression


def test_the_reading_says_words_runs_and_warnings(ada: Belongings) -> None:
    text = reading(ada, **DAILY)
    assert "At 02:30" in text
    assert "in Europe/Berlin" in text
    assert text.count("data-instant=") == 5
    assert text.count("02:30 CET") + text.count("02:30 CEST") == 5
    assert "UTC" in text
    both = reading(ada, preset="custom", cron="0 12 13 * fri", timezone="UTC")
    assert "Day of month and day of week are both set" in both
    assert text.startswith("\n") or "<html" not in text, "a piece of a page"


def test_the_reading_says_what_is_wrong_and_where(ada: Belongings) -> None:
    assert "Cron expression: " in reading(ada, preset="custom", cron="0 0 31 2 *", timezone="UTC")
    assert "Time zone: there is no zone 'Berlin'" in reading(ada, **DAILY | {"timezone": "Berlin"})
    assert "Time of day: A time such as 03:30" in reading(ada, **DAILY | {"time": "later"})
    assert "How often: This field is required." in reading(ada)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\0", "é" * 300, "9" * 200])
def test_nothing_that_is_typed_breaks_the_reading(ada: Belongings, hostile: str) -> None:
    for field in ("preset", "cron", "timezone", "minute", "time", "weekdays", "day"):
        given = {"preset": "custom", "cron": "0 0 * * *", "timezone": "UTC"} | {field: hostile}
        response = ada.client.get(READING, given)
        assert response.status_code == 200, field
        assert "<script>" not in response.content.decode(), field


def test_without_a_script_check_shows_the_same_and_keeps_what_was_typed(ada: Belongings) -> None:
    form = form_of(ada, ADD)
    sent = form.sent("check", name="", preset="weekly", weekdays=["2", "4"], time="05:10", keep_last="3")
    response = ada.client.post(ADD, sent)
    text = response.content.decode()
    assert response.status_code == 200
    assert "10 5 * * 2,4" in text
    assert "This field is required" not in text, "nobody has pressed Save yet"
    assert response.context["parts"].keeping["keep_last"].value() == "3"
    assert not Schedule.objects.exists()
    wrong = ada.client.post(ADD, form.sent("check", preset="custom", cron="* *"))
    assert wrong.status_code == 400
    assert "Cron expression:" in wrong.content.decode()


def test_only_an_untouched_new_form_takes_the_zone_of_the_browser(ada: Belongings, nightly: Schedule) -> None:
    def asks(url: str) -> bool:
        return "data-new" in ada.client.get(url).content.decode()

    assert asks(ADD)
    assert not asks(step_of(nightly, "edit"))
    assert not asks(f"{ADD}?like={nightly.pk}")
    assert "data-new" not in ada.client.post(ADD, form_of(ada, ADD).sent("check")).content.decode()
