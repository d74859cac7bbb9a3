"""Is a value one that an option takes? A payload is JSON of any origin, so types are checked too."""

from __future__ import annotations

import re

from .options import SECTIONS, Field
from .patterns import problem_with

LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "lz4": (1, 12)}
MOST_ENTRIES = 1000
LONGEST_TEXT = 1000


def check(field: Field, value: object) -> list[str]:
    """What is wrong with a value for a field, each as a sentence that names the field."""
    if field.kind == "switch" and not isinstance(value, bool):
        return [f"{field.name} must be true or false."]
    if field.kind == "either" and not (value is None or isinstance(value, bool)):
        return [f"{field.name} must be true, false or unset."]
    if field.kind == "number":
        return _check_number(field, value)
    if field.kind in ("patterns", "sections"):
        return _check_list(field, value)
    if field.kind in ("choice", "codec", "text"):
        return _check_text(field, value)
    return []


def _check_number(field: Field, value: object) -> list[str]:
    fits = isinstance(value, int) and not isinstance(value, bool) and field.low <= value <= field.high
    return [] if fits else [f"{field.name} must be a whole number from {field.low} to {field.high}."]


def _check_text(field: Field, value: object) -> list[str]:
    if not isinstance(value, str):
        return [f"{field.name} must be text."]
    if field.kind == "choice" and value not in field.choices:
        return [f"{field.name} must be one of {', '.join(field.choices)}."]
    if field.kind == "codec" and value:
        return _check_codec(value)
    if field.name == "encoding" and not re.fullmatch(r"[A-Za-z0-9_-]*", value):
        return ["encoding must be the name of an encoding, such as UTF8 or LATIN1."]
    return [f"{field.name} {problem}." for problem in filter(None, [_unprintable(value)])]


def _check_codec(value: str) -> list[str]:
    codec, colon, level = value.partition(":")
    if codec == "none" and not colon:
        return []
    if codec not in LEVELS:
        return ["compress must be zstd, gzip, lz4 (each with a level, as in zstd:3) or none."]
    low, high = LEVELS[codec]
    if colon and not (level.isascii() and level.isdigit() and low <= int(level) <= high):
        return [f"compress: the level of {codec} must be from {low} to {high}, as in {codec}:{low}."]
    return []


def _check_list(field: Field, value: object) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        return [f"{field.name} must be a list of texts."]
    if len(value) > MOST_ENTRIES:
        return [f"{field.name} holds more than {MOST_ENTRIES} entries."]
    if field.kind == "sections":
        wrong = [item for item in value if item not in SECTIONS]
        return [f"section must be of {', '.join(SECTIONS)}."] if wrong else []
    return [
        f"{field.name}: {item!r} {problem}."
        for item in value
        if (problem := _unprintable(item) or problem_with(item, field.dots))
    ]


def _unprintable(text: str) -> str:
    if not text.isprintable() or len(text) > LONGEST_TEXT:
        return "holds control characters or is longer than 1000 characters"
    return ""
