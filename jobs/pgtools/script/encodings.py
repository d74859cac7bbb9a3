r"""Encodings in which a byte of a character may look like ASCII, for instance like a backslash.

They are client encodings only. As psql does, such characters are blotted out before the text is looked at.
"""

from __future__ import annotations

import re

_TWO = re.compile(rb"[\x80-\xff].", re.DOTALL)
_MASKED = {
    "SJIS": re.compile(rb"[\x80-\xa0\xe0-\xff].", re.DOTALL),
    "SHIFT_JIS_2004": re.compile(rb"[\x80-\xa0\xe0-\xff].", re.DOTALL),
    "GB18030": re.compile(rb"[\x80-\xff](?:[0-9]..|[^0-9])", re.DOTALL),
    "BIG5": _TWO,
    "GBK": _TWO,
    "UHC": _TWO,
    "JOHAB": _TWO,
}


def masked(text: bytes, encoding: str) -> bytes:
    """`text` of the same length in which every byte below 128 is a character; it begins with a whole one.

    `encoding` is named as the server reports client_encoding.
    """
    return _MASKED[encoding].sub(lambda found: b"\xff" * len(found.group()), text)


def is_doubtful(encoding: str) -> bool:
    """Whether text in it has to be masked."""
    return encoding in _MASKED
