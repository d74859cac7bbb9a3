"""Small scripts whose origin is known, such as the roles that were saved with a backup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .items import Statement
from .scanner import Scanner

_STRINGS = re.compile(
    rb"SET\s+(?:SESSION\s+|LOCAL\s+)?standard_conforming_strings\s*(?:=|\sTO\s)\s*'?(?P<value>on|off)\b",
    re.IGNORECASE,
)


def statements(sql: bytes) -> Iterator[Statement]:
    r"""The statements of a script in UTF-8, without its \connect lines and COPY data; raises ScriptError.

    What changes how strings are read is followed where it is said with SET.
    """
    scanner = Scanner([sql])
    for item in scanner:
        if isinstance(item, Statement):
            said = _STRINGS.match(item.text)
            if said:
                scanner.standard_strings = said["value"].lower() == b"on"
            yield item
