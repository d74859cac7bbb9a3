"""A cron expression in plain English."""

from __future__ import annotations

from cron_descriptor import ExpressionDescriptor, Options

from schedules.fields import expand_word, parse


def in_words(expression: str) -> str:
    """`30 2 * * mon` is "At 02:30, only on Monday": a 24-hour clock, no zone. Raises CronError."""
    parse(expression)
    options = Options()
    options.use_24hour_time_format = True
    words: str = ExpressionDescriptor(expand_word(expression), options).get_description()
    return words
