r"""The lines of a script that are for psql and not for the server: those that
pg_dump writes are known, everything else is refused.

By the rules of psql's psqlscanslash.l and of pg_dump, which writes these and no others.
"""

from __future__ import annotations

import re

from .errors import ScriptError
from .items import Connect

_END = rb"[ \t]*\r?(?:\n|\Z)"
# Before a \connect to a name of other characters than letters and digits, pg_dump writes \encoding.
_NOTHING = re.compile(rb"\\(?:(?:un)?restrict[ \t]+[A-Za-z0-9]+|encoding[ \t]+SQL_ASCII)" + _END)
_QUOTED = rb'"(?:[^"\r\n]|"")+"'
_CONNECT = re.compile(
    rb"\\c(?:onnect)?[ \t]+(?:-reuse-previous=on[ \t]+(?P<conninfo>" + _QUOTED + rb")|"
    rb"(?P<quoted>" + _QUOTED + rb")|(?P<bare>[A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*))" + _END
)
_DBNAME = re.compile(rb"dbname=(?:'((?:[^'\\]|\\.)*)'|([A-Za-z0-9_.]+))")


def command(text: bytes, line: int) -> Connect | None:
    r"""What a line that begins with a backslash asks for; None: nothing. Raises ScriptError.

    `text` goes on to the end of the line, or of the input.
    """
    if _NOTHING.fullmatch(text):
        return None
    found = _CONNECT.fullmatch(text)
    name = _name(found) if found else None
    if name is None:
        raise refused(text, line)
    return Connect(line, name.decode("utf-8", "surrogateescape"))


def refused(text: bytes, line: int) -> ScriptError:
    """The error for a text that begins with a backslash."""
    said = re.match(rb"\\(?:[A-Za-z_]{1,20}|[!-~])?", text)
    name = said.group().decode("ascii") if said else "\\"
    if name == "\\.":
        return ScriptError(line, r"\. ends the data of a COPY, and there is none here.")
    return ScriptError(
        line,
        f"the psql command {name} is not run. pgbr runs no commands of psql's; take them out of the file.",
    )


def _name(found: re.Match[bytes]) -> bytes | None:
    bare, quoted, conninfo = found.group("bare", "quoted", "conninfo")
    if bare:
        return bytes(bare).lower()  # of bytes, that is ASCII only, as psql does it
    text = bytes(quoted or conninfo)[1:-1].replace(b'""', b'"')
    if quoted:
        return None if b"=" in text or b"://" in text else text
    dbname = _DBNAME.fullmatch(text)
    return re.sub(rb"\\(.)", rb"\1", dbname.group(1) or dbname.group(2) or b"") if dbname else None
