from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from jobs.pgtools.script import source
from jobs.pgtools.script.errors import ScriptError
from jobs.pgtools.script.items import Connect, CopyData, CopyEnd, Item, Statement
from jobs.pgtools.script.reading import statements
from jobs.pgtools.script.scanner import Scanner


def texts(script: str, **settings: object) -> list[str]:
    scanner = Scanner([script.encode()])
    for name, value in settings.items():
        setattr(scanner, name, value)
    return [item.text.decode() for item in scanner if isinstance(item, Statement)]


def merged(chunks: Iterable[bytes]) -> list[Item]:
    """The items with all data of a COPY in one."""
    found: list[Item] = []
    for item in Scanner(chunks):
        last = found[-1] if found else None
        if isinstance(item, CopyData) and isinstance(last, CopyData):
            found[-1] = CopyData(last.line, last.data + item.data)
        else:
            found.append(item)
    return found


ONE = [  # each is one statement, whatever semicolons and quotes it holds
    "SELECT 'a;b', 'it''s;', \"x;y\", \"a\"\"b;c\"",
    "SELECT 1 -- a; comment 'with quotes\n, 2",
    "SELECT 1 -- ends with a carriage return;\r, 2",
    "SELECT /* a; 'comment /* in a */ ; comment */ 2",
    "SELECT 1 +/* ; */ 2 --/* not a comment;\n * 3",
    "SELECT $$a;'$$, $tag$ $$ ; $other$ $tag$, $t$ ;$ta$t$",
    "SELECT a$b$c, $1 FROM x$y WHERE n = 1;"[:-1],
    "SELECT E'a\\';b', e'\\\\', 'x'",
    "SELECT E'a'\n  -- comment; \n  '\\';' , 'b'",
    "SELECT '\\', 'c;'",
    "SELECT N'\\', B'1;', X'a;', U&'\\0061;', U&\"d\\0061t;\"",
    "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM a; DELETE FROM b)",
    "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END",
    "create or replace procedure p() begin /* ; */ atomic select 1; end",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT t.begin, ';' FROM t; END",
    "CREATE FUNCTION begin() RETURNS int LANGUAGE sql AS 'select 1'",
    "CREATE FUNCTION f(begin atomic) RETURNS int LANGUAGE sql AS 'select 1'",
    "CREATE VIEW v AS SELECT begin FROM t",
    "INSERT INTO t VALUES (1, '(', now(), ((2)), ')')",
    "SELECT :name, :'name', :\"name\", a[1:2], 1::int",
    "SELECT 'ünï;cödé', \"日本;語\"",
    "SELECT 5 - -3, 7 / 2, 'x' ~ '\\d;'",
]


@pytest.mark.parametrize("text", ONE)
def test_semicolons_in_quotes_comments_parentheses_and_bodies_end_nothing(text: str) -> None:
    assert texts(f"{text};\nSELECT 'next';") == [text, "SELECT 'next'"]


def test_where_standard_conforming_strings_is_off_plain_strings_have_escapes_too() -> None:
    text = "SELECT 'a\\';b', n'\\';', B'1', U&'\\0061', X'1'"
    assert texts(f"{text};SELECT 2;", standard_strings=False) == [text, "SELECT 2"]
    assert texts("SELECT '\\'; SELECT 2;") == ["SELECT '\\'", "SELECT 2"]


def test_what_changes_how_strings_are_read_is_followed_in_small_scripts() -> None:
    script = (
        b"SET standard_conforming_strings = off; SELECT '\\';'; "
        b"SET standard_conforming_strings TO on; SELECT '\\';"
    )
    assert [found.text for found in statements(script)][1::2] == [b"SELECT '\\';'", b"SELECT '\\'"]


def test_in_encodings_with_doubtful_bytes_a_half_of_a_character_is_no_backslash() -> None:
    for encoding, codec in (("SJIS", "cp932"), ("BIG5", "big5"), ("GBK", "gbk"), ("GB18030", "gb18030")):
        name = {"SJIS": "ソ表", "BIG5": "功許", "GBK": "乗俓", "GB18030": "乗㐀"}[encoding]
        text = f"SELECT E'{name}', {name}".encode(codec)
        assert b"\\" in text or encoding == "GB18030"
        scanner = Scanner([text[:11], text[11:], b"; SELECT 2;"])
        scanner.encoding = encoding
        assert [item.text for item in scanner if isinstance(item, Statement)] == [text, b"SELECT 2"]


def test_empty_statements_and_a_byte_order_mark_are_nothing() -> None:
    assert texts("\ufeff;; -- nothing\n;/* at all */ SELECT 1 ; ; -- end") == ["SELECT 1 "]
    assert texts("") == texts(" \r\n") == texts("-- only\r-- comments") == []


def test_a_semicolon_behind_a_backslash_separates_statements() -> None:
    assert texts("SELECT 1\\; SELECT 2;") == ["SELECT 1", "SELECT 2"]


def test_items_know_their_lines() -> None:
    script = (
        b'-- one\nSELECT\n1;\n\\restrict k\n\\connect "My db"\n'
        b"COPY t FROM stdin; -- go\n1\n2\n\\.\n SELECT 2;"
    )
    assert merged([script]) == [
        Statement(2, b"SELECT\n1"),
        Connect(5, "My db"),
        Statement(6, b"COPY t FROM stdin", takes_data=True),
        CopyData(7, b"1\n2\n"),
        CopyEnd(),
        Statement(10, b"SELECT 2"),
    ]


@pytest.mark.parametrize(
    ("statement", "takes_data"),
    [
        ("COPY t FROM stdin", True),
        ('copy public."from" (a, "to") from STDIN WITH (FORMAT csv)', True),
        ("COPY t FROM/* stdin */stdout", True),
        ("COPY t TO stdin", False),
        ("COPY t /* FROM stdin */ TO stdout", False),
        ("COPY (SELECT 1 FROM stdin) TO stdout", False),
        ("COPY t FROM PROGRAM 'stdin'", False),
        ("COPY t FROM 'stdin'", False),
        ("SELECT 'COPY t FROM stdin'", False),
    ],
)
def test_data_follows_copy_from_stdin_only(statement: str, takes_data: bool) -> None:
    script = f"{statement};\n" + ("\\.\n" if takes_data else "")
    (item, *_) = merged([script.encode()])
    assert isinstance(item, Statement)
    assert item.takes_data == takes_data


@pytest.mark.parametrize(
    ("written", "data"),
    [
        (b"\\.\n", b""),
        (b"1\n\\.\n", b"1\n"),
        (b"1\r\n\\.\r\n", b"1\r\n"),
        (b"\\.x\n \\.\n\\. \n\\N\n\\\\.\n\\.\n", b"\\.x\n \\.\n\\. \n\\N\n\\\\.\n"),
        (b"\n\n\\.\n", b"\n\n"),
        (b"a\r\\.\rb\n\\.\n", b"a\r\\.\rb\n"),
    ],
)
def test_data_ends_with_a_backslash_and_a_dot_alone_on_a_line(written: bytes, data: bytes) -> None:
    found = merged([b"COPY t FROM stdin;\n" + written + b"SELECT 2;"])
    assert b"".join(item.data for item in found if isinstance(item, CopyData)) == data
    assert found[-1] == Statement(2 + written.count(b"\n"), b"SELECT 2")


def test_where_the_input_is_cut_into_chunks_changes_nothing() -> None:
    script = "".join(f"{text};\n" for text in ONE) + (
        "\\restrict abc\n\\connect shop\nCOPY t FROM stdin;\n\\.\nCOPY t (a) FROM stdin WITH (FORMAT csv);\n"
        "\\.x\n1\n\\.\r\n/* a */ -- b\r\n SELECT E'\\'' -- c\n '\\'' ; SELECT 'ü'\\; SELECT 2 ;-- end"
    )
    whole = script.encode()
    expected = merged([whole])
    assert len(expected) == len(ONE) + 9
    assert merged(whole[at : at + 1] for at in range(len(whole))) == expected
    chance = random.Random(3)  # noqa: S311
    for _ in range(100):
        cuts = sorted(chance.sample(range(len(whole)), chance.randint(1, 40)))
        assert merged(whole[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)) == expected


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("SELECT 1;\nSELECT 2", "Line 2: the file ends within the statement"),
        ("SELECT (1;", "Line 1: the file ends within the statement"),
        ("\nSELECT 'abc;\n", "Line 2: the file ends within a string"),
        ("SELECT $a$ ; $b$", "Line 1: the file ends within a string"),
        ("\n/* never", "Line 2: the file ends within a string or comment"),
        ("\nCOPY t FROM stdin;\n1\n2\n", "Line 2: the data of this COPY never ends"),
        ("COPY t FROM stdin;", "Line 1: the file ends where the data"),
        ("COPY t FROM stdin; SELECT 1;\n\\.\n", "Line 1: something stands after COPY"),
        ("COPY t FROM stdin;\r1\r\\.\r", "Line 1: the file ends where the data"),
        ("SELECT 'a\0';", "Line 1: a statement holds a zero byte"),
        ("\\.\n", "Line 1: .* ends the data of a COPY, and there is none"),
    ],
)
def test_a_script_that_breaks_off_or_is_no_text_is_refused(script: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        merged([script.encode()])


def test_a_statement_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_STATEMENT", 3 << 20)
    taken = iter(range(1000))
    with pytest.raises(ScriptError, match="more than 3 MB"):
        merged(b"x" * (1 << 20) for _ in taken)
    assert next(taken) < 10
