from __future__ import annotations

from pathlib import Path

import pytest

from jobs.pgtools.archive.contents import inspect
from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.errors import ToolFailed
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restore_log import SHOWN, RestoreErrors, failures

from .conftest import MakePlace, Place

SCRIPT = """
CREATE TABLE kinds (id int PRIMARY KEY);
INSERT INTO kinds VALUES (1);
CREATE TABLE "Two words" (id int PRIMARY KEY);
INSERT INTO "Two words" VALUES (1);
"""
REAL = """\
pg_restore: connecting to database for restore
pg_restore: while PROCESSING TOC:
pg_restore: from TOC entry 224; 1259 16548 TABLE Two words app
pg_restore: error: could not execute query: ERROR:  relation "Two words" already exists
Command was: CREATE TABLE public."Two words" (
    id integer
);


pg_restore: error: could not read from input file: end of file
"""


@pytest.fixture(scope="module", params=[14, 18])
def full(request: pytest.FixtureRequest, make_place: MakePlace) -> tuple[Place, Path, Toc]:
    """A database and a dump of just what it holds."""
    place = make_place(request.param, SCRIPT)
    archive, _ = place.dump({})
    (place.folder / "kinds.dump").write_bytes(archive)
    toc = inspect(lambda start: iter([archive[start:]]), len(archive)).toc
    assert toc is not None
    return place, place.folder / "kinds.dump", toc


def fail(place: Place, path: Path, flags: dict[str, object], jobs: int = 1) -> str:
    argv = RestoreFlags.from_dict(flags).argv(
        place.toolset, source=path, format="custom", dbname=place.name, jobs=jobs
    )
    with pytest.raises(ToolFailed) as caught:
        place.run(argv)
    return caught.value.log


def test_errors_that_were_accepted_are_counted_and_named(full: tuple[Place, Path, Toc]) -> None:
    place, path, toc = full
    errors = failures(fail(place, path, {"accept_errors": True}), toc)
    assert errors.complete
    assert errors.count == 6
    assert errors.first[:2] == [
        'TABLE public.Two words: relation "Two words" already exists',
        'TABLE public.kinds: relation "kinds" already exists',
    ]
    assert errors.first[2] == (
        'TABLE DATA public.Two words: COPY failed for table "Two words": duplicate key value violates unique '
        'constraint "Two words_pkey" (Key (id)=(1) already exists)'
    )
    assert errors.summary().startswith("6 errors, the first: TABLE public.Two words: ")


def test_in_parallel_each_error_counts_once(full: tuple[Place, Path, Toc]) -> None:
    place, path, toc = full
    log = fail(place, path, {"accept_errors": True, "data_only": True}, jobs=2)
    errors = failures(log, toc)
    assert (errors.complete, errors.count, len(errors.first)) == (True, 2, 2)


def test_a_restore_that_broke_off_is_not_complete(full: tuple[Place, Path, Toc]) -> None:
    place, path, toc = full
    errors = failures(fail(place, path, {}), toc)
    assert (errors.complete, errors.count) == (False, 1)
    assert (
        errors.summary() == '1 error, the first: TABLE public.Two words: relation "Two words" already exists'
    )


def test_objects_are_named_as_pg_restore_does_where_the_contents_are_unknown() -> None:
    errors = failures(REAL)
    assert errors.first == [
        'TABLE Two words: relation "Two words" already exists',
        "could not read from input file: end of file",
    ]
    assert errors.count == 2


def test_only_the_last_line_says_that_it_went_to_the_end() -> None:
    """An archive may hold a statement that looks like it."""
    ignored = "pg_restore: warning: errors ignored on restore: 1"
    assert failures([*REAL.splitlines(), ignored, ""]).complete
    assert not failures([ignored, *REAL.splitlines()]).complete
    assert not failures([ignored, "pg_restore: finished item 3 TABLE DATA a"]).complete


def test_lines_of_parallel_helpers_that_got_mixed_up_are_understood() -> None:
    errors = failures(
        [
            "pg_restore:pg_restore:  from TOC entry 5; 0 16 TABLE DATA kinds app",
            "pg_restore:pg_restore: error: COPY failed for table \"kinds\": ERROR:  value too long",
            " error: could not execute query: ERROR:  no such thing",
        ]
    )  # fmt: skip
    assert errors.first == [
        'TABLE DATA kinds: COPY failed for table "kinds": value too long',
        "TABLE DATA kinds: no such thing",
    ]


def test_no_more_is_held_than_is_shown() -> None:
    errors = RestoreErrors()
    for number in range(100):
        errors.feed(f"pg_restore: error: could not execute query: ERROR:  {number} {'x' * 5000}")
        errors.feed("DETAIL:  " + "y" * 5000)
    assert (errors.count, len(errors.first)) == (100, SHOWN)
    assert max(map(len, errors.first)) < 600
