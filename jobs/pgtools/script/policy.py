"""Which statements of a script reach the server, and how."""

from __future__ import annotations

import re
from itertools import islice

from .copying import direction
from .errors import ScriptError
from .items import Connect, Statement
from .lexing import Word, words

# What an option of a restore leaves out, told by how the statement begins.
LEFT_OUT = {
    "no_owner": r"ALTER .* OWNER TO \S+$|SET SESSION AUTHORIZATION ",
    "no_privileges": r"(?:GRANT|REVOKE|ALTER DEFAULT PRIVILEGES) ",
    "no_tablespaces": r"SET DEFAULT_TABLESPACE ",
    "no_comments": r"COMMENT ON ",
    "no_extension_comments": r"COMMENT ON EXTENSION ",
    "no_publications": r"(?:CREATE|ALTER|COMMENT ON) PUBLICATION ",
    "no_subscriptions": r"(?:CREATE|ALTER|COMMENT ON) SUBSCRIPTION ",
    "no_security_labels": r"SECURITY LABEL ",
    "no_policies": r"(?:CREATE|COMMENT ON) POLICY |ALTER TABLE .* ENABLE ROW LEVEL SECURITY$",
}
# Written by pg_dump of some major, unknown to servers of some other.
SETTINGS = ("transaction_timeout", "default_with_oids", "default_table_access_method")
_LOOKED_AT = re.compile(
    rb"(?:ABORT|ALTER|BEGIN|COMMENT|COMMIT|COPY|CREATE|DROP|END|GRANT|PREPARE|REVOKE|ROLLBACK|SECURITY|SET|START)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 2_000
_DATABASE = re.compile(
    r"(?:CREATE|ALTER) DATABASE |DROP DATABASE (?:IF EXISTS )?|ALTER (?:ROLE|USER) \S+ IN DATABASE |"
    r"(?:COMMENT|GRANT .*|REVOKE .*|SECURITY LABEL(?: FOR \S+)?) ON DATABASE (?!TO |FROM )"
)
_OPENS = re.compile(r"BEGIN\b|START TRANSACTION\b")
_CLOSES = re.compile(r"(?:COMMIT|END)\b(?! PREPARED)")
_UNDOES = re.compile(r"ABORT\b|PREPARE TRANSACTION\b|ROLLBACK\b(?! PREPARED)(?!(?: WORK| TRANSACTION)? TO )")
_SET = re.compile(r"SET (?:SESSION |LOCAL )?(\S+) ")


class Policy:
    """Decides about one script's statements in turn.

    A script is about one database, whatever name it gives it; that is taken for the target. `lacking` are the
    settings among SETTINGS that the server does not know, `skip` the names among LEFT_OUT that apply.
    """

    def __init__(
        self, target_name: str, *, single_transaction: bool, lacking: frozenset[str], skip: frozenset[str]
    ) -> None:
        self._target = quoted(target_name)
        self._single = single_transaction
        self._lacking = lacking
        self._own: bytes | None = None
        self._skip = re.compile("|".join(f"(?:{LEFT_OUT[name]})" for name in sorted(skip)) or r"(?!)")

    def connect(self, item: Connect) -> None:
        r"""Check a \connect, which is not followed: there is a session with the target already."""
        self._is_own(item.name.encode("utf-8", "surrogateescape"), item.line)

    def for_server(self, item: Statement) -> bytes | None:
        """The text to send; None: nothing. Raises ScriptError for what must not be sent."""
        if not _LOOKED_AT.match(item.text):
            return item.text
        _refuse_copies(item)
        found = list(islice(words(item.text), _MOST_WORDS))
        said = " ".join(word.said for word in found)
        if self._is_left_out(said) or (self._single and _is_absorbed(said, item.line)):
            return None
        named = _DATABASE.match(said)
        if named and len(found) > named.group().count(" "):
            return self._about_database(item, said, found[named.group().count(" ") :])
        return item.text

    def _is_left_out(self, said: str) -> bool:
        setting = _SET.match(said)
        return bool(setting and setting[1].lower() in self._lacking) or bool(self._skip.match(said))

    def _about_database(self, item: Statement, said: str, rest: list[Word]) -> bytes | None:
        name = item.text[rest[0].start : rest[0].end]
        self._is_own(_folded(name), item.line)
        following = rest[1].said if len(rest) > 1 else ""
        if following == "," or (following == "RENAME" and said.startswith("ALTER DATABASE")):
            raise ScriptError(
                item.line, "a statement about several databases, or one that renames it, is not run."
            )
        if said.startswith(("CREATE", "DROP")):
            return None
        return item.text[: rest[0].start] + self._target + item.text[rest[0].end :]

    def _is_own(self, name: bytes, line: int) -> None:
        self._own = self._own if self._own is not None else name
        if name != self._own:
            own, other = (text.decode("utf-8", "replace") for text in (self._own, name))
            raise ScriptError(
                line,
                f'the script is about database "{own}" and now about "{other}"; only one can be restored.',
            )


def _is_absorbed(said: str, line: int) -> bool:
    """Inside one transaction, the script's own (pg_dump's around large objects) are parts of it."""
    if _UNDOES.match(said):
        raise ScriptError(
            line,
            f"{said[:40]} would undo what the single transaction holds. Restore without single transaction.",
        )
    return bool(_OPENS.match(said) or _CLOSES.match(said))


def _refuse_copies(item: Statement) -> None:
    way = direction(item.text)
    if way == "out":
        raise ScriptError(item.line, "COPY … TO STDOUT writes rows out; there is nowhere to put them.")
    if way not in ("", "in"):
        raise ScriptError(
            item.line,
            "COPY with a program or file of the server is not run; only FROM STDIN, with rows in the script.",
        )


def _folded(name: bytes) -> bytes:
    return name[1:-1].replace(b'""', b'"') if name.startswith(b'"') else name.lower()


def quoted(name: str) -> bytes:
    """An identifier in ASCII, so that it is right whatever client_encoding the script has set."""
    if name.isascii():
        return b'"' + name.replace('"', '""').encode() + b'"'
    escaped = "".join(
        {'"': '""', "\\": "\\\\"}.get(c, c if c.isascii() else f"\\+{ord(c):06x}") for c in name
    )
    return f'U&"{escaped}"'.encode()
