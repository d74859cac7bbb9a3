"""One line of an archive's table of contents, and the words that a text in it may be encoded in."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Kinds that are created but have no owner of their own: _getObjectDescription of pg_backup_archiver.c.
OWNERLESS = frozenset(
    {"CAST", "CHECK CONSTRAINT", "CONSTRAINT", "DEFAULT", "FK CONSTRAINT", "INDEX", "RULE", "TRIGGER"}
    | {"ROW SECURITY", "POLICY", "USER MAPPING", "DATABASE PROPERTIES"}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """`kind` is pg_dump's word ("TABLE DATA"), `name` its tag: for a constraint "table constraint", for a
    comment "TABLE name". `schema` and `owner` are "" where there are none.

    `has_data`: rows or large objects come with it. `data_at`: where they begin in a custom archive, in bytes
    from its start, when that says so. `droppable`: it has a DROP statement, so it is an object of its own.
    """

    dump_id: int
    kind: str
    schema: str
    name: str
    owner: str
    section: str
    definition: str
    copy: str
    depends_on: tuple[int, ...]
    has_data: bool
    tablespace: str = ""
    droppable: bool = False
    data_at: int | None = None

    @property
    def owned(self) -> bool:
        """pg_restore gives it to its owner, unless told not to. No database: pgbr makes its own."""
        return self.droppable and bool(self.owner) and self.kind not in OWNERLESS | {"DATABASE"}


# PostgreSQL's names of encodings (src/common/encnames.c) that Python knows under another one.
CODECS = {
    "EUC_CN": "gb2312", "EUC_JIS_2004": "euc_jis_2004", "EUC_JP": "euc_jp", "EUC_KR": "euc_kr",
    "ISO_8859_5": "iso8859_5", "ISO_8859_6": "iso8859_6", "ISO_8859_7": "iso8859_7",
    "ISO_8859_8": "iso8859_8", "KOI8R": "koi8_r", "KOI8U": "koi8_u", "SHIFT_JIS_2004": "shift_jis_2004",
    "LATIN1": "iso8859_1", "LATIN2": "iso8859_2", "LATIN3": "iso8859_3", "LATIN4": "iso8859_4",
    "LATIN5": "iso8859_9", "LATIN6": "iso8859_10", "LATIN7": "iso8859_13", "LATIN8": "iso8859_14",
    "LATIN9": "iso8859_15", "LATIN10": "iso8859_16", "BIG5": "big5", "GB18030": "gb18030", "GBK": "gbk",
    "JOHAB": "johab", "SJIS": "shift_jis", "UHC": "cp949", "UTF8": "utf-8",
    "WIN866": "cp866", "WIN874": "cp874", **{f"WIN125{n}": f"cp125{n}" for n in range(9)},
}  # fmt: skip
CLIENT_ENCODING = re.compile(r"SET client_encoding = '([A-Za-z0-9_]{1,20})';\s*")


class Texts:
    """Bytes of an archive to str: by its ENCODING entry once that was seen, as UTF-8 until then.

    Bytes that are no text in that encoding come out as \\xNN.
    """

    def __init__(self) -> None:
        self._codec = "utf-8"
        self._shared: dict[bytes, str] = {}

    def __call__(self, raw: bytes | None) -> str:
        return "" if raw is None else raw.decode(self._codec, "backslashreplace")

    def shared(self, raw: bytes | None) -> str:
        """For what repeats from entry to entry: held in memory once."""
        if not raw:
            return ""
        known = self._shared.get(raw)
        if known is None:
            known = self._shared[raw] = self(raw)
        return known

    def learn(self, definition: str) -> None:
        """From the definition of the ENCODING entry. An encoding Python lacks is read as UTF-8."""
        match = CLIENT_ENCODING.fullmatch(definition)
        if match:
            self._codec = CODECS.get(match[1].upper(), "utf-8")
            self._shared.clear()
