"""Which entries belong to a table, what a pattern means and what is said to be missing."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest

from jobs.pgtools.archive.globs import NamePattern, exact
from jobs.pgtools.archive.select import list_text, selection
from jobs.pgtools.archive.toc import Toc, parse_toc
from jobs.pgtools.errors import InvalidFlags
from tests.pgtools.archive import forge


def toc_of(*rows: tuple[Any, ...]) -> Toc:
    """Of (kind, name, definition, dependencies…), numbered from 1, in the schema public."""
    entries = [
        forge.entry(number, kind, name, definition=definition, deps=map(str, deps))
        for number, (kind, name, definition, *deps) in enumerate(rows, start=1)
    ]
    return parse_toc(io.BytesIO(forge.toc(entries)).read)


def ids(toc: Toc, **options: Any) -> list[int]:
    return list(selection(toc, **options).ids)


# Two tables whose entries have the same tags: "a b c" is c of "a b", or "b c" of "a".
ALIKE = toc_of(
    ("TABLE", "a", "CREATE TABLE public.a ();"),
    ("TABLE", "a b", 'CREATE TABLE public."a b" ();', 1),
    ("CONSTRAINT", "a b c", 'ALTER TABLE ONLY public.a\n    ADD CONSTRAINT "b c" PRIMARY KEY (x);', 1),
    ("FK CONSTRAINT", "a b c", 'ALTER TABLE ONLY public."a b"\n    ADD CONSTRAINT c FOREIGN KEY', 1, 2, 3),
    ("TRIGGER", "a b c", 'CREATE TRIGGER "b c" BEFORE UPDATE OF "on" ON public.a FOR EACH ROW', 1, 2),
    (
        "RULE",
        "a b c",
        'CREATE RULE c AS\n    ON INSERT TO public."a b" DO INSTEAD INSERT INTO public.a',
        1,
        2,
    ),
    ("POLICY", "a b c", 'CREATE POLICY c ON public."a b" FOR SELECT TO x USING (true);', 2),
    ("STATISTICS", "s", 'CREATE STATISTICS public.s ON EXTRACT(year FROM x), y FROM public."a b";', 2),
    ("COMMENT", "TRIGGER b c ON a", "COMMENT ON TRIGGER", 5),
    ("ACL", "TABLE a b", "GRANT", 2),
    ("ACL", 'COLUMN "a b".x', "GRANT", 2, 10),
    ("STATISTICS DATA", "a b", "SELECT pg_restore_relation_stats()", 2),
)


def test_statements_tell_to_which_table_an_entry_belongs() -> None:
    assert ids(ALIKE, tables=["a"]) == [1, 3, 5, 9]
    assert ids(ALIKE, tables=['"a b"']) == [2, 6, 7, 8, 10, 11, 12]
    assert ids(ALIKE, tables=["*"]) == list(range(1, 13))


def test_partial_archives_are_chosen_from_too() -> None:
    """Of a dump of data only, and of one of what comes after the data, in the words of before 10.3."""
    data = toc_of(
        ("TABLE DATA", "a", "", 99), ("TABLE DATA", "b", "", 98), ("SEQUENCE SET", "a_id_seq", "", 97)
    )
    assert ids(data, tables=["a*"]) == [1, 3]
    after = toc_of(
        ("INDEX", "i", "CREATE INDEX i ON a USING btree (x);", 99), ("INDEX", "j", "CREATE INDEX j ON b", 98)
    )
    assert ids(after, tables=["a"]) == [1]


def test_what_a_table_needs_comes_along_and_what_it_needs_too() -> None:
    toc = toc_of(
        ("EXTENSION", "citext", "CREATE EXTENSION citext;"),
        ("FUNCTION", "check_it()", "CREATE FUNCTION", 1),
        ("DOMAIN", "mail", "CREATE DOMAIN", 2),
        ("SEQUENCE", "numbers", "CREATE SEQUENCE public.numbers"),
        ("TABLE", "other", "CREATE TABLE"),
        ("TABLE", "people", "CREATE TABLE public.people (…) INHERITS (public.other)", 3, 5),
        (
            "DEFAULT",
            "people id",
            "ALTER TABLE ONLY public.people ALTER COLUMN id SET DEFAULT nextval()",
            6,
            4,
        ),
        ("SEQUENCE SET", "numbers", "SELECT setval()", 4),
        ("COMMENT", "EXTENSION citext", "COMMENT ON", 1),
        ("TABLE DATA", "people", "", 6),
    )
    whole = selection(toc, tables=["people"])
    assert list(whole.ids) == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert whole.missing == ["Table public.other is not chosen; table public.people needs it."]
    assert 9 not in ids(toc, tables=["people"], without=frozenset({"extension comments"}))
    alone = selection(toc, tables=["people"], needed=False)
    assert list(alone.ids) == [6, 7, 10]
    assert len(alone.missing) == 3
    assert ids(toc, tables=["people"], exclude_tables=["numbers"]) == [1, 2, 3, 6, 7, 9, 10]


def test_words_about_what_is_missing_stay_few() -> None:
    views = [("VIEW", f"v{n}", "CREATE VIEW", n) for n in range(1, 90)]
    toc = toc_of(*(("TABLE", f"t{n}", "CREATE TABLE") for n in range(1, 90)), *views)
    missing = selection(toc, tables=["v*"]).missing
    assert (len(missing), missing[0], missing[-1]) == (
        51,
        "Table public.t1 is not chosen; view public.v1 needs it.",
        "And 39 more.",
    )


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("Orders", {"orders"}),
        ('"Orders"', {"Orders"}),
        ("o*s", {"orders", "os"}),
        ("*", {"orders", "Orders", "os", "a.b", 'q"t', "é"}),
        ("?", {"é"}),
        ('"a.b"', {"a.b"}),
        ('"q""t"', {'q"t'}),
        ("public.o*", {"orders", "os"}),
        ("p*.*e?s", {"orders", "Orders"}),
        ("other.*", set()),
        ('"o*"', set()),
    ],
)
def test_patterns_mean_what_they_mean_in_psql(pattern: str, matching: set[str]) -> None:
    names = ("orders", "Orders", "os", "a.b", 'q"t', "é")
    assert {name for name in names if NamePattern(pattern, 1).matches("public", name)} == matching


@pytest.mark.parametrize("pattern", ["", "a.b.c", '"a', "a|b", "(a)", "a+", "[ab]"])
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidFlags, match="pattern"):
        selection(ALIKE, tables=[pattern])


@pytest.mark.parametrize("name", ["kinds", 'a"b.c', "?*", "日本", "Order; DROP TABLE kinds", "$1", "\\"])
def test_the_exact_pattern_of_a_name_matches_it_alone(name: str) -> None:
    pattern = NamePattern(exact("s.x", name), 1)
    assert pattern.matches("s.x", name)
    assert not pattern.matches("s.x", f"{name}x")
    assert not pattern.matches("sax", name)
    assert NamePattern(exact("s", "tab\tx"), 1).matches("s", "tab\tx")


def test_a_pattern_takes_no_longer_than_its_length() -> None:
    began = time.process_time()
    pattern = NamePattern("*a" * 400 + "b", 0)
    for _ in range(10):
        assert not pattern.matches("", "a" * 1000)
    assert time.process_time() - began < 2


def test_the_list_is_one_of_dump_ids() -> None:
    assert list_text((5, 3)) == "5;\n3;\n"
