"""The five fields of a cron expression: read strictly, so that nothing runs otherwise than it reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from schedules.errors import CronError

WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
LONGEST = dict.fromkeys((4, 6, 9, 11), 30) | {2: 29}
ITEM = re.compile(r"(?P<low>\*|[0-9]+|[A-Za-z]+)(?:-(?P<high>[0-9]+|[A-Za-z]+))?(?:/(?P<step>[0-9]+))?")
MOST_CHARACTERS = 200  # of the column


@dataclass(frozen=True)
class Field:
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    @property
    def takes(self) -> str:
        named = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.first}-{self.last}{named}"


FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, MONTHS),
    Field("day of week", 0, 7, WEEKDAYS),
)


@dataclass(frozen=True)
class Fields:
    """The values each field names, sorted; a Sunday is 0."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    day_set: bool  # the field is not `*`
    weekday_set: bool
    follows_elapsed_time: bool  # the hour is `*` or `*/n`

    @property
    def names_all_days(self) -> bool:
        """One of the two day fields does, and either will do."""
        return self.day_set and self.weekday_set and (len(self.days) == 31 or len(self.weekdays) == 7)

    @cached_property
    def days_spelled(self) -> str:
        """The last three fields as lists of numbers, `*` for all."""
        days, weekdays = spell(self.days, 31), spell(self.weekdays, 7)
        if self.names_all_days:
            days = weekdays = "*"
        return f"{days} {spell(self.months, 12)} {weekdays}"


def spell(values: tuple[int, ...], how_many: int) -> str:
    """`1,15`, or `*` where these are all."""
    return "*" if len(values) == how_many else ",".join(map(str, values))


def expand_word(expression: str) -> str:
    """`@daily` as its five fields; else the expression itself with single spaces. Raises CronError."""
    text = " ".join(expression.split())
    if not text.startswith("@"):
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    known = ", ".join(WORDS)
    raise CronError(f"{text!r} is not one of the words that stand for a schedule: {known}.")


def parse(expression: str) -> Fields:
    """Raises CronError: which field, what is wrong with it, what would be right."""
    if len(expression) > MOST_CHARACTERS:
        raise CronError(f"the expression is longer than {MOST_CHARACTERS} characters; make it two schedules.")
    texts = expand_word(expression).split()
    if len(texts) != len(FIELDS):
        raise CronError(_wrong_count(len(texts)))
    minutes, hours, days, months, weekdays = (
        _values(field, text) for field, text in zip(FIELDS, texts, strict=True)
    )
    fields = Fields(
        minutes,
        hours,
        days,
        months,
        weekdays,
        day_set=not _any(texts[2]),
        weekday_set=not _any(texts[4]),
        follows_elapsed_time=all(part.startswith("*") for part in texts[1].split(",")),
    )
    _refuse_never(fields)
    return fields


def _wrong_count(count: int) -> str:
    wanted = "five fields are wanted: minute, hour, day of month, month, day of week (30 2 * * *)"
    more = "; seconds and years are not supported" if count > len(FIELDS) else ""
    return f"the expression has {count} field{'' if count == 1 else 's'}, {wanted}{more}."


def _any(text: str) -> bool:
    return text in ("*", "*/1")


def _values(field: Field, text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(field, part, text))
    if field.names == WEEKDAYS:
        found = {value % 7 for value in found}
    return tuple(sorted(found))


def _part(field: Field, part: str, text: str) -> range:
    match = ITEM.fullmatch(part)
    if match is None or (match["low"] == "*" and match["high"]):
        raise CronError(_not_understood(field, part, text))
    step = _step(field, match["step"])
    low, high = _bounds(field, match["low"], match["high"], stepped=match["step"] is not None)
    if low > high:
        raise CronError(
            f"{field.name}: the range {part!r} runs backwards; "
            f"write {match['low']}-{field.last},{field.first}-{match['high']} instead."
        )
    return range(low, high + 1, step)


def _bounds(field: Field, low: str, high: str | None, *, stepped: bool) -> tuple[int, int]:
    open_end = 6 if field.names == WEEKDAYS else field.last
    if low == "*":
        return field.first, open_end
    start = _number(field, low)
    if high is None:
        return start, max(start, open_end) if stepped else start
    end = _number(field, high)
    # A range up to Sunday: fri-sun.
    return start, 7 if field.names == WEEKDAYS and end == 0 and start > 0 else end


def _number(field: Field, text: str) -> int:
    if text.lower() in field.names:
        return field.names.index(text.lower()) + (1 if field.names == MONTHS else 0)
    if not text.isdigit():
        raise CronError(f"{field.name}: {text!r} is not understood; it takes {field.takes}.")
    number = int(text)
    if not field.first <= number <= field.last:
        raise CronError(f"{field.name}: {text} is out of range; it takes {field.takes}.")
    return number


def _step(field: Field, text: str | None) -> int:
    if text is None:
        return 1
    step, most = int(text), 7 if field.names == WEEKDAYS else field.last - field.first + 1
    if not 1 <= step <= most:
        raise CronError(f"{field.name}: a step of {text} is out of range; it takes 1-{most}.")
    return step


def _not_understood(field: Field, part: str, text: str) -> str:
    if not part:
        return f"{field.name}: {text!r} has a comma too many."
    return (
        f"{field.name}: {part!r} is not understood; it takes {field.takes}, "
        "with * for all, a-b for a range, /n for every n-th and commas between several."
    )


def _refuse_never(fields: Fields) -> None:
    if fields.weekday_set and fields.day_set:
        return
    if min(fields.days) > max(LONGEST.get(month, 31) for month in fields.months):
        raise CronError(
            "day of month: this date never comes, as none of the months has "
            f"a day {fields.days[0]}; February has 29 at most, April, June, September and November 30."
        )
