"""Takes apart statements that pg_dump wrote, to read names and values out of them. Nothing is ever run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from . import patience

# Of a statement out of an archive; names stand at its beginning, and a list of all its tokens must fit.
LONGEST = 1 << 18
ASKED_EVERY = 1 << 12
# Possessive, so that a quote which is never closed costs one look at the rest and no more.
TOKEN = re.compile(
    r"""\s++ | --[^\n]*+ | "([^"]*+(?:""[^"]*+)*+)" | '([^']*+(?:''[^']*+)*+)'
    | ([^\W\d][\w$]*+) | ([0-9]++) | (.)""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind`: "word" (unquoted), "name" (in double quotes), "text" (in single quotes), "number" or "sign"."""

    kind: str
    value: str

    @property
    def keyword(self) -> str:
        """In upper case; "" for anything that is not an unquoted word."""
        return self.value.upper() if self.kind == "word" else ""


def beginning(statement: str) -> Iterator[Token]:
    """The tokens of its first LONGEST characters. Raises Stopped as `patience` has it."""
    return tokens(statement, LONGEST)


def tokens(statement: str, most: int = sys.maxsize) -> Iterator[Token]:
    """Of the first `most` characters."""
    for count, match in enumerate(TOKEN.finditer(statement, 0, most)):
        if count % ASKED_EVERY == 0:
            patience.ask()
        name, text, word, number, sign = match.groups()
        if name is not None:
            yield Token("name", name.replace('""', '"'))
        elif text is not None:
            yield Token("text", text.replace("''", "'"))
        elif word is not None:
            yield Token("word", word)
        elif number is not None:
            yield Token("number", number)
        elif sign is not None:
            yield Token("sign", sign)
