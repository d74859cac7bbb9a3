"""Statements and the server's complaints in words that fit into a line and give away no literal."""

from __future__ import annotations

import re

import psycopg

from .items import Statement

LONGEST_HEAD = 120
LONGEST_REASON = 600
# What a backslash means in a literal depends on settings: nothing that follows one is shown.
_LITERAL = re.compile(r"'(?:[^'\\]|'')*(?:'|\\.*|$)|\$\w*\$.*")
_COPY_LINE = re.compile(r"^COPY .+?, line (\d+)", re.MULTILINE)


def head(text: bytes) -> str:
    """The beginning of a statement, of LONGEST_HEAD characters at most; passwords are literals."""
    words = " ".join(text[: 8 * LONGEST_HEAD].decode("utf-8", "replace").split())
    words = _LITERAL.sub("'…'", words)
    return words if len(words) <= LONGEST_HEAD else f"{words[: LONGEST_HEAD - 1]}…"


def reason(error: psycopg.Error) -> str:
    """What the server or libpq says, in one line."""
    said = error.diag
    if said.message_primary is None:
        return " ".join(str(error).split())[:LONGEST_REASON]
    parts = [f"{said.severity}: {said.message_primary}"]
    for name, text in (("DETAIL", said.message_detail), ("HINT", said.message_hint)):
        if text:
            parts.append(f"{name}: {text}")
    return " ".join(" ".join(parts).split())[:LONGEST_REASON]


def line_of(error: psycopg.Error, item: Statement, data_line: int) -> int:
    """The script's line that the server complains of; `data_line` is the first one of a COPY's data, or 0."""
    row = _COPY_LINE.search(error.diag.context or "")
    if row and data_line:
        return data_line + int(row[1]) - 1
    position = error.diag.statement_position
    if position and position.isdecimal():
        return item.line + item.text.decode("utf-8", "replace")[: int(position) - 1].count("\n")
    return item.line
