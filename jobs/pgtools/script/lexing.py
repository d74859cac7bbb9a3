"""Where the tokens of SQL end, by the rules of PostgreSQL's scan.l and psql's psqlscan.l.

Everything here is a function of bytes. A token that does not end within the text has the end -1: look again
when there is more. Groups that repeat are possessive: they keep no states to go back to, so a text of any
length takes linear time and no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SPACE = rb"[ \t\n\r\f\v]"
NAME = rb"[A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*+"
COMMENT = rb"--[^\r\n]*+"
# A token could go on with these in the next piece of input.
UNSURE = bytes([*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$&/-", *range(128, 256)])


def _many(*alternatives: bytes) -> bytes:
    """Any number of them.

    Before Python 3.11.5 a group that fails after it has matched a part leaves the end of that part as the
    end of all. The last alternative fails where the group begins, and so puts it right.
    """
    return rb"(?:" + b"|".join([*alternatives, rb"(?!)"]) + rb")*+"


_COMMENT_LINE = COMMENT + rb"[\r\n]"
BLANK = re.compile(_many(SPACE + rb"++", _COMMENT_LINE))
_BODY = re.compile(rb"'" + _many(rb"[^'\\]++", rb"\\.", rb"''") + rb"'", re.DOTALL)
# Two literals with a line break between them are one, of the first one's kind.
_CONTINUED = re.compile(
    _many(rb"[ \t\f\v]++", COMMENT) + rb"[\r\n]" + _many(SPACE + rb"++", _COMMENT_LINE) + rb"(?=')"
)
_AFTER = re.compile(_many(SPACE + rb"++", COMMENT) + rb"(?:-\Z)?")
_BLOCK = re.compile(rb"/\*|\*/")
_DOLLAR = re.compile(rb"\$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*+)?\$")
_HALF_DOLLAR = re.compile(rb"\$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*+)?\Z")


def _run(prefixes: bytes, *literals: bytes) -> re.Pattern[bytes]:
    atoms = (
        rb"[^'\"();\\$/\-A-Za-z_\x80-\xff]++", rb"(?!" + prefixes + rb"')" + NAME, *literals, rb'"[^"]*+"',
        _COMMENT_LINE, rb"-(?!-)", rb"/(?!\*)", rb"\$[0-9]++",
    )  # fmt: skip
    flat = rb"\(" + _many(*atoms) + rb"\)"
    nested = rb"\(" + _many(*atoms, flat) + rb"\)"
    return re.compile(_many(*atoms, nested), re.DOTALL)


# By standard_conforming_strings: what holds neither a statement's end nor anything that needs a closer look.
_RUN = {True: _run(rb"[eE]", rb"'[^']*+'"), False: _run(rb"(?:[eEbBxX]|[uU]&)")}
_ESCAPED = {True: re.compile(rb"[eE](?=')"), False: re.compile(rb"[eE]?(?=')")}
_TOKEN = re.compile(rb"(?:[bBxX]|[uU]&)?'[^']*+'|\"[^\"]*+\"|" + COMMENT)
_NAME = re.compile(NAME)
_QUOTED = re.compile(rb"(?:[eEbBxX]|[uU]&)?'|\"|--|/(?=\*)|\$(?=[A-Za-z_\x80-\xff$])")
_SAID = {b"'": "'", b'"': '"', b"$": "'", b"-": "", b"/": ""}


def run_end(text: bytes, at: int, *, standard_strings: bool) -> int:
    """The end of the harmless text that begins at `at`, on a token's border.

    Where it is the end of `text` too, the last token may go on: look again from its `border`.
    """
    found = _RUN[standard_strings].match(text, at)
    return found.end() if found else at


def border(text: bytes, at: int, end: int) -> int:
    """Where the last token between `at` and `end` begins, if it could go on after `end`."""
    return at + len(text[at:end].rstrip(UNSURE))


def token_end(text: bytes, at: int, *, standard_strings: bool) -> int:
    """The end of the string, quoted name or comment that begins at `at`; of anything else, one byte on."""
    first = text[at : at + 1]
    if first == b"$":
        return _dollar_end(text, at)
    if first == b"/":
        return _block_end(text, at)
    escaped = _ESCAPED[standard_strings].match(text, at)
    if escaped:
        return _escaped_end(text, escaped.end())
    token = _TOKEN.match(text, at)
    return token.end() if token else -1


def _dollar_end(text: bytes, at: int) -> int:
    opened = _DOLLAR.match(text, at)
    if not opened:
        return -1 if _HALF_DOLLAR.match(text, at) else at + 1
    closed = text.find(opened.group(), opened.end())
    return closed + len(opened.group()) if closed >= 0 else -1


def _block_end(text: bytes, at: int) -> int:
    depth = 0
    for found in _BLOCK.finditer(text, at):
        depth += 1 if found.group() == b"/*" else -1
        if depth == 0:
            return found.end()
    return -1


def _escaped_end(text: bytes, at: int) -> int:
    body = _BODY.match(text, at)
    while body and (continued := _CONTINUED.match(text, body.end())):
        body = _BODY.match(text, continued.end())
    if not body:
        return -1
    after = _AFTER.match(text, body.end())
    return len(text) if after and after.end() == len(text) else body.end()


class Word(NamedTuple):
    """A token that is neither space nor comment. `said`: a name in upper case, `"` for a quoted one, `'` for
    a string, else the character itself."""

    said: str
    start: int
    end: int


def words(text: bytes, *, standard_strings: bool = True) -> Iterator[Word]:
    """The tokens of a whole statement, as far as they are well formed."""
    at = 0
    while at < len(text):
        blank = BLANK.match(text, at)
        at = blank.end() if blank else at
        word = _word(text, at, standard_strings)
        if word is None:
            return
        if word.said:
            yield word
        at = word.end


def _word(text: bytes, at: int, standard_strings: bool) -> Word | None:
    token = _QUOTED.match(text, at)
    if token:
        end = token_end(text, at, standard_strings=standard_strings)
        quote = token.group()[-1:]
        while end > at and quote in (b'"', b"'") and text[end : end + 1] == quote:  # one that is doubled
            end = token_end(text, end, standard_strings=standard_strings)
        return Word(_SAID[quote], at, end) if end > at else None
    name = _NAME.match(text, at)
    if name:
        return Word(name.group().decode("utf-8", "replace").upper(), at, name.end())
    return Word(text[at : at + 1].decode("latin-1"), at, at + 1) if at < len(text) else None
