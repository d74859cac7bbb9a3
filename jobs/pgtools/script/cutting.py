"""Where a statement ends."""

from __future__ import annotations

from .body import Body
from .commands import refused
from .errors import ScriptError
from .lexing import BLANK, border, run_end, token_end
from .source import LONGEST_STATEMENT, Source

_COMMENTS = (b"/*", b"--")


def skip_blank(source: Source) -> bool:
    """Go on to what is neither space nor comment; False when the script ends before."""
    while True:
        blank = BLANK.match(source.seen, source.start)
        source.advance(blank.end() if blank else source.start)
        rest = source.seen[source.start : source.start + 2]
        if rest in _COMMENTS:
            source.advance(_token_end(source, 0, standard_strings=True) + source.start)
        elif len(rest) == 2 or not source.more():
            return rest != b""


def is_separator(source: Source, at: int) -> bool:
    r"""Whether `\;` stands at `at`, counted from the source's start."""
    return source.seen.startswith(b"\\;", source.start + at)


def next_statement(source: Source, *, standard_strings: bool) -> bytes:
    r"""The text up to the next semicolon that is in no parentheses, body, string or comment.

    `\;` counts as one: psql puts more than one statement into a message that way, here each has its own.
    """
    at = depth = 0  # counted from the source's start: the window moves
    body = Body()
    while True:
        at = _harmless_end(source, at, standard_strings)
        sign = source.seen[source.start + at : source.start + at + 1]
        if sign == b"":
            raise ScriptError(
                source.line,
                "the file ends within the statement that begins here. It is cut off, or lacks a ;.",
            )
        if sign in b"()":
            depth = max(0, depth + (1 if sign == b"(" else -1))
            at += 1
            continue
        if sign not in b";\\":
            at = _token_end(source, at, standard_strings=standard_strings)
            continue
        end = source.start + at
        inside = depth > 0 or body.is_open(source.seen, source.start, end, standard_strings=standard_strings)
        if sign == b"\\" and (inside or not is_separator(source, at)):
            raise _refused(source, at)
        if not inside:
            return _cut(source, at, 2 if sign == b"\\" else 1)
        at += 1


def _harmless_end(source: Source, at: int, standard_strings: bool) -> int:
    while True:
        start = source.start + at
        end = run_end(source.seen, start, standard_strings=standard_strings)
        if source.ended or len(source.seen) - end > 1:
            return end - source.start
        at = border(source.seen, start, end) - source.start
        source.more()


def _token_end(source: Source, at: int, *, standard_strings: bool) -> int:
    while True:
        end = token_end(source.seen, source.start + at, standard_strings=standard_strings)
        if end >= 0 and (end < len(source.seen) or source.ended):
            return end - source.start
        if not source.more() and end < 0:
            raise ScriptError(
                source.line, "the file ends within a string or comment of what begins here. It is cut off."
            )


def _cut(source: Source, at: int, width: int) -> bytes:
    line, text = source.line, source.text[source.start : source.start + at]
    if len(text) > LONGEST_STATEMENT:
        raise ScriptError(line, f"a statement of more than {LONGEST_STATEMENT >> 20} MB.")
    if b"\0" in text:
        raise ScriptError(line, "a statement holds a zero byte: this is no text, or UTF-16. Use UTF-8.")
    source.advance(source.start + at + width)
    return text


def _refused(source: Source, at: int) -> ScriptError:
    while len(source.text) - source.start - at < 32 and source.more():
        pass
    source.advance(source.start + at)
    return refused(source.text[source.start : source.start + 32], source.line)
