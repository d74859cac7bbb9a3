"""A dump's CREATE DATABASE is taken apart into values, or not at all."""

from __future__ import annotations

import pytest

from jobs.pgtools.archive.database import DatabaseProperties, properties

START = "CREATE DATABASE shop WITH TEMPLATE = template0 ENCODING = 'UTF8' "


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("LC_COLLATE = 'C' LC_CTYPE = 'de_DE.UTF-8';", ("libc", "C", "de_DE.UTF-8", "")),
        ("LOCALE_PROVIDER = libc LOCALE = 'C';\n", ("libc", "C", "C", "")),
        (
            "LOCALE_PROVIDER = icu LOCALE = 'C' ICU_LOCALE = 'und' ICU_RULES = '&a < ''g''';",
            ("icu", "C", "C", "und", "&a < 'g'"),
        ),
        (
            "LOCALE_PROVIDER = builtin LOCALE = 'C' BUILTIN_LOCALE = 'C.UTF-8' TABLESPACE = x;",
            ("builtin", "C", "C", "C.UTF-8"),
        ),
    ],
)
def test_what_pg_dump_writes_is_read(options: str, expected: tuple[str, ...]) -> None:
    assert properties(START + options) == DatabaseProperties("UTF8", *expected)


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "DROP DATABASE shop;",
        START,
        f"{START}DROP TABLE x;",
        "CREATE DATABASE x WITH ENCODING = 'U''; DROP DATABASE x;--';",
        f"{START}LOCALE = 'C''; DROP';",
        f"{START}ENCODING = 'LATIN1';",
        f"{START}LOCALE_PROVIDER = mine;",
        f"{START}LOCALE = ;",
        f"{START}LOCALE = '{'C' * 200}';",
        f"{START}{'X = 1 ' * 50_000};",
    ],
    ids=range(11),
)
def test_anything_else_is_not(statement: str) -> None:
    assert properties(statement) is None
