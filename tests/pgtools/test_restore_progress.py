from __future__ import annotations

from pathlib import Path

import pytest

from jobs.pgtools.archive.contents import Contents, inspect
from jobs.pgtools.archive.entry import Entry
from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restore_log import failures
from jobs.pgtools.restore_progress import RestoreProgress

from .conftest import MakePlace, Place

TABLES = {
    "public.orders", "public.customers", "public.cache", "public.events_2026", "Old Stuff.Table.1",
    "audit.orders", "large objects",
}  # fmt: skip


@pytest.fixture(scope="module", params=[14, 18])
def source(request: pytest.FixtureRequest, make_place: MakePlace) -> tuple[Place, Path, Contents]:
    place = make_place(request.param)
    archive, _ = place.dump({})
    path = place.folder / "shop.dump"
    path.write_bytes(archive)
    return place, path, inspect(lambda start: iter([archive[start:]]), len(archive))


def restore(place: Place, path: Path, jobs: int) -> str:
    argv = RestoreFlags().argv(place.toolset, source=path, format="custom", dbname=place.name, jobs=jobs)
    return place.run(argv)[1]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_restore_is_followed_to_its_end(
    source: tuple[Place, Path, Contents], make_place: MakePlace, jobs: int
) -> None:
    place, path, contents = source
    log = restore(make_place(place.server.major, ""), path, jobs)
    progress = RestoreProgress(contents.toc, None, contents.sizes)
    shares, seen = [0.0], set()
    for line in log.splitlines():
        progress.feed(line)
        shares.append(progress.share())
        seen |= set(progress.current)
        assert len(progress.current) <= jobs
    assert shares == sorted(shares)
    assert shares[-1] >= 0.9  # the last line begins with the last entry
    assert len(set(shares)) > 15
    assert seen == TABLES
    assert progress.current == ()
    assert (failures(log).count, failures(log).summary()) == (0, "")


def entry(number: int, kind: str, name: str, section: str) -> Entry:
    return Entry(number, kind, "public", name, "ada", section, "", "", (), section == "data")


TOC = Toc(
    "custom", (1, 15, 0), "none", "shop", "16.4", "16.4", None,
    (
        entry(1, "TABLE", "a", "pre-data"), entry(2, "TABLE", "b", "pre-data"),
        entry(3, "TABLE DATA", "a", "data"), entry(4, "TABLE DATA", "b", "data"),
        entry(5, "INDEX", "a_i", "post-data"), entry(6, "INDEX", "b_i", "post-data"),
    ),
)  # fmt: skip


def test_what_is_streamed_counts_by_its_bytes_until_the_last_row() -> None:
    progress = RestoreProgress(TOC, 1000)
    progress.feed('pg_restore: processing data for table "public.a"')
    assert progress.share() == pytest.approx(0.05)
    progress.advance(500)
    assert progress.share() == pytest.approx(0.05 + 0.65 / 2)
    progress.advance(1000)
    progress.feed('pg_restore: creating INDEX "public.b_i"')
    assert progress.share() == pytest.approx(0.70 + 0.30 / 2)
    assert progress.step == "creating index public.b_i"


def test_tables_weigh_by_size_where_sizes_are_known() -> None:
    progress = RestoreProgress(TOC, None, {3: 10**9, 4: 0})
    progress.feed('pg_restore: processing data for table "public.b"')
    assert progress.share() == pytest.approx(0.70, abs=0.001)


def test_plain_sql_counts_by_its_bytes_alone() -> None:
    progress = RestoreProgress(None, 1000)
    progress.advance(250)
    assert progress.share() == 0.25
    progress.advance(2000)
    assert progress.share() == 0.99
    assert RestoreProgress(None).share() == 0.0


def test_lines_of_parallel_helpers_that_got_mixed_up_are_understood() -> None:
    progress = RestoreProgress(TOC)
    for line in (
        "pg_restore: entering main parallel loop",
        "pg_restore: pg_restore:launching item 3 TABLE DATA a",
        " launching item 4 TABLE DATA b",
    ):
        assert progress.feed(line), line
    assert list(progress.current) == ["public.a", "public.b"]
    assert progress.feed("pg_restore:pg_restore:  finished item 3 TABLE DATA a")
    assert list(progress.current) == ["public.b"]


def test_what_says_nothing_about_progress_changes_nothing() -> None:
    progress = RestoreProgress(TOC)
    for line in (
        "Command was: CREATE TABLE",
        "",
        "pg_restore: finished item x",
        "pg_restore: launching item 99 T",
    ):
        progress.feed(line)
    assert (progress.share(), progress.current, progress.step) == (0.0, (), "")
