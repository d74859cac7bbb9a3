from __future__ import annotations

import pytest

from jobs.pgtools.restore_hints import HINTS, advised

# What servers and tools of 14 to 18 say, and a word of the advice.
SAID = [
    ("could not read from input file: end of file", "damaged or cut off"),
    ("could not uncompress data: invalid code", "damaged or cut off"),
    ("Line 9: the file is cut off.", "another copy"),
    ('TABLE public.t: relation "t" already exists', "clean"),
    ('duplicate key value violates unique constraint "t_pkey"', "empty the tables first"),
    ('insert or update on table "a" violates foreign key constraint "b"', "disable_triggers"),
    (
        "cannot drop table a because other objects depend on it (view b depends on table a) (Use DROP ... "
        "CASCADE to drop the dependent objects too)",
        "choose that too",
    ),
    ("must be owner of table t", "no_owner"),
    ('must be able to SET ROLE "boss"', "no_owner"),
    ('role "gone" does not exist', "Create the role first"),
    ('permission denied to create extension "postgres_fdw"', "as a superuser first"),
    ('extension "postgis" is not available', "as a superuser first"),
    ("permission denied for schema public", "GRANT CREATE"),
    ("permission denied for table t", "no_owner"),
    ("out of shared memory (You might need to increase max_locks_per_transaction.)", "single_transaction"),
    ('could not extend file "base/1/2": No space left on device', "disk of the database server"),
    (
        'character with byte sequence 0xe2 in encoding "UTF8" has no equivalent in encoding "LATIN1"',
        "encoding",
    ),
    ("terminating connection due to administrator command", "see its log"),
    ('relation "public.t" does not exist', "the definitions too"),
]


@pytest.mark.parametrize(("text", "advice"), SAID)
def test_an_error_of_a_restore_says_what_to_do(text: str, advice: str) -> None:
    told = advised(text)
    assert told.startswith(text.rstrip("."))
    assert advice in told.removeprefix(text)
    assert advised(told) == told


def test_other_texts_stay_as_they_are() -> None:
    for text in (
        "The database is protected.",
        'Renaming "a" failed: database "a_before" already exists',
        "server closed the connection unexpectedly. The server ended the session; see its log.",
    ):
        assert advised(text) == text


def test_each_advice_is_given_for_something() -> None:
    assert {advised(text).removeprefix(f"{text.rstrip('.')}. ") for text, _ in SAID} == {
        advice for _, advice in HINTS
    }
