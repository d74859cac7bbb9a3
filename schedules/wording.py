"""A cron expression in plain English."""

from __future__ import annotations

from functools import lru_cache

from cron_descriptor import ExpressionDescriptor, Options

from schedules.fields import expand_word, parse, spell


@lru_cache(maxsize=4096)
def in_words(expression: str) -> str:
    """`30 2 * * mon` is "At 02:30, only on Monday": a 24-hour clock, no zone. Raises CronError."""
    fields, texts = parse(expression), expand_word(expression).split()
    times = f"{_rhythm(texts[0], fields.minutes, 60)} {_rhythm(texts[1], fields.hours, 24)}"
    month = _listed(texts[3], fields.months, 12)
    if fields.names_all_days:
        return _describe(f"{times} * {month} *")
    day, weekday = _listed(texts[2], fields.days, 31), _listed(texts[4], fields.weekdays, 7)
    if not (fields.day_set and fields.weekday_set):
        return _describe(f"{times} {day} {month} {weekday}")
    by_day, by_weekday = _describe(f"{times} {day} {month} *"), _describe(f"{times} * {month} {weekday}")
    return f"{by_day}; also {by_weekday[0].lower()}{by_weekday[1:]}"


def _rhythm(text: str, values: tuple[int, ...], size: int) -> str:
    """Every 15 minutes is said so, every 7 is not: the last step of an hour is shorter."""
    _, slash, step = text.partition("/")
    if slash and "," not in text and len(values) > 1 and ("-" in text or size % int(step) == 0):
        return text
    return _listed(text, values, size)


def _listed(text: str, values: tuple[int, ...], size: int) -> str:
    """A range as it stands, all else as a list of what it comes to."""
    is_range = "-" in text and "," not in text and "/" not in text
    return text if is_range and 1 < len(values) < size else spell(values, size)


def _describe(text: str) -> str:
    every_hour = text.split()[1].startswith("*")
    # "At 02:30, every day", but "Every 6 hours". In English whatever the server's own language is.
    options = Options(use_24hour_time_format=True, verbose=not every_hour, locale_code="en_US")
    words: str = ExpressionDescriptor(text, options).get_description()
    return words
