"""COPY: where its rows come from or go to, and the rows that stand in the script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .errors import ScriptError
from .items import CopyData, CopyEnd
from .lexing import words
from .source import Source

_COPY = re.compile(rb"COPY\b", re.IGNORECASE)
_REST_OF_LINE = re.compile(rb"[ \t\r\f\v]*+(?:--[^\r\n]*+\r?)?\n")
_END = re.compile(rb"\n\\\.\r?\n")
_END_OF_FILE = re.compile(rb"\n\\\.\r?\Z")
_HALF_AN_END = re.compile(rb"\n(?:\\(?:\.\r?)?)?\Z")
_LONGEST_HALF = 4


def direction(text: bytes) -> str:
    """Of a statement: "in" for COPY … FROM STDIN, "out" for COPY … TO STDOUT, "server" for a file or program
    there and for what cannot be told, "" for all but COPY.

    The server takes STDIN and STDOUT for the same word, so it is FROM and TO that say.
    """
    if not _COPY.match(text):
        return ""
    depth, way = 0, ""
    for word in words(text):
        depth += {"(": 1, ")": -1}.get(word.said, 0)
        if way:
            return way if word.said in ("STDIN", "STDOUT") else "server"
        if depth == 0:
            way = {"FROM": "in", "TO": "out"}.get(word.said, "")
    return "server"


def skip_rest_of_line(source: Source) -> None:
    """Move to the line break after which the data begins; raises ScriptError when SQL stands before it.

    psql runs that only after the data: a place to hide something, and nothing that pg_dump writes.
    """
    while (end := source.text.find(b"\n", source.start)) < 0:
        if not source.more():
            raise ScriptError(
                source.line, "the file ends where the data of a COPY should begin. It is cut off."
            )
    if not _REST_OF_LINE.fullmatch(source.text, source.start, end + 1):
        raise ScriptError(source.line, "something stands after COPY … FROM STDIN; on its line. Remove it.")
    source.advance(end)


def data(source: Source, line: int) -> Iterator[CopyData | CopyEnd]:
    r"""The rows up to a line with only `\.`, in pieces as large as they come; `line` is that of the COPY.

    Begins at a line break that is not part of the data.
    """
    skip = 1
    while True:
        end, after = _end(source)
        if end > source.start + skip:
            yield CopyData(source.line + skip, source.text[source.start + skip : end])
        skip = skip if end == source.start else 0
        source.advance(max(end, after))
        if after >= 0:
            yield CopyEnd()
            return
        if not source.more():
            raise ScriptError(line, r"the data of this COPY never ends with a line \. : the file is cut off.")


def _end(source: Source) -> tuple[int, int]:
    """Up to where there is data for sure, and where the script goes on after it; -1 when data may follow."""
    text = source.text
    backslash = text.find(b"\\", source.start)  # much faster to look for, and often there is none
    at = max(source.start, backslash - 1)
    while backslash >= 0 and (at := text.find(b"\n\\.", at)) >= 0:
        found = _END.match(text, at) or (source.ended and _END_OF_FILE.match(text, at))
        if found:
            return at + 1, found.end()
        at += 1
    half = _HALF_AN_END.search(text, max(source.start, len(text) - _LONGEST_HALF))
    return (half.start() if half else len(text)), -1
