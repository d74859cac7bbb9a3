from __future__ import annotations

import random

import pytest

from jobs.pgtools import progress, tables
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.progress import LARGE_OBJECTS, DumpProgress, Finished, Started, Step, parse

from .conftest import Place

MB = 1 << 20


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('pg_dump: dumping contents of table "public.orders"\n', Started("public.orders")),
        ('pg_dump: dumping contents of table "S x.t."q"', Started('S x.t."q')),
        ("pg_dump: saving large objects", Started(LARGE_OBJECTS)),
        ('pg_dump: saving large objects "16414..16500"', Started(LARGE_OBJECTS)),
        ('pg_dump: finished item 2586 TABLE DATA t."q', Finished('t."q')),
        ("pg_dump: finished item 2547 BLOBS BLOBS", Finished(LARGE_OBJECTS)),
        ("pg_dump: reading indexes", Step("reading indexes")),
        ('pg_dump:pg_dump: dumping contents of table "public.orders"', Started("public.orders")),
        (' dumping contents of table "public.orders"', Started("public.orders")),
        ("pg_dump:pg_dump: finished item 1 TABLE DATA orders", Finished("orders")),
        ("pg_dump: executing SELECT 1", None),
        ("pg_dump: error: query failed", None),
        ("", None),
    ],
)
def test_lines_are_read(line: str, event: object) -> None:
    assert parse(line) == event


def test_tables_count_by_their_size() -> None:
    dump = DumpProgress({"public.big": 90 * MB, "public.small": 10 * MB}, "none")
    assert dump.share() == 0
    assert dump.feed('pg_dump: dumping contents of table "public.big"')
    assert dump.current == ("public.big",)
    dump.feed('pg_dump: dumping contents of table "public.small"')
    assert dump.share() == pytest.approx(0.9, abs=0.001)
    assert (dump.tables_done, dump.tables_total, dump.step) == (1, 2, "dumping public.small")


def test_within_a_table_bytes_move_the_share_and_never_finish_it() -> None:
    dump = DumpProgress({"a.only": 100 * MB}, "none")
    dump.feed('pg_dump: dumping contents of table "a.only"')
    dump.advance(40 * MB)
    assert dump.share() == pytest.approx(0.5, abs=0.01)
    dump.advance(4000 * MB)
    assert 0.9 < dump.share() < 1


def test_what_the_first_tables_compressed_to_tells_the_next() -> None:
    dump = DumpProgress({"a.first": 100 * MB, "a.second": 100 * MB}, "zstd:3")
    dump.feed('pg_dump: dumping contents of table "a.first"')
    dump.advance(10 * MB)
    dump.feed('pg_dump: dumping contents of table "a.second"')
    dump.advance(15 * MB)
    assert dump.share() == pytest.approx(0.75, abs=0.01)


def test_tables_in_parallel_finish_by_name() -> None:
    dump = DumpProgress({"a.x": 50 * MB, "b.y": 30 * MB, "b.z": 20 * MB}, "zstd:3", jobs=2)
    dump.feed('pg_dump: dumping contents of table "a.x"')
    dump.feed('pg_dump: dumping contents of table "b.y"')
    assert " ".join(dump.current) == "a.x b.y"
    dump.feed("pg_dump: finished item 12 TABLE DATA y")
    assert " ".join(dump.current) == "a.x"
    assert dump.tables_done == 1
    assert dump.share() == pytest.approx(0.3, abs=0.001)
    dump.feed("pg_dump: finished item 11 TABLE DATA x")
    assert dump.share() == pytest.approx(0.8, abs=0.001)


def test_the_share_never_falls_and_is_never_full_before_the_end() -> None:
    chance = random.Random(3)  # noqa: S311
    weights = {f"s.t{n}": chance.choice([0, 1000, MB, 50 * MB]) for n in range(40)}
    dump = DumpProgress(weights, "zstd:3")
    before = written = 0.0
    for name in [*weights, "s.unknown"]:
        dump.feed(f'pg_dump: dumping contents of table "{name}"')
        for _ in range(5):
            written += chance.random() * MB
            dump.advance(int(written))
            assert before <= dump.share() < 1
            before = dump.share()
    assert before > 0.9


def test_a_dump_of_no_tables_has_no_progress_and_no_error() -> None:
    dump = DumpProgress({})
    dump.feed("pg_dump: reading schemas")
    dump.advance(100)
    assert (dump.share(), dump.step, dump.tables_total) == (0.0, "reading schemas", 0)


@pytest.mark.parametrize(
    ("share", "elapsed", "left"), [(0.5, 10, 10.0), (0.25, 60, 180.0), (0.001, 60, None), (0.5, 0.2, None)]
)
def test_time_left_follows_from_share_and_time(share: float, elapsed: float, left: float | None) -> None:
    assert progress.seconds_left(share, elapsed) == left


def test_rate_is_bytes_over_time() -> None:
    assert progress.rate(100, 300, 2) == 100
    assert progress.rate(300, 100, 2) == 0
    assert progress.rate(0, 100, 0) == 0


@pytest.mark.parametrize("values", [{}, {"format": "directory", "jobs": 3}])
def test_a_real_dump_is_almost_done_when_its_log_ends(shop: Place, values: dict[str, object]) -> None:
    flags = DumpFlags.from_dict(values)
    with shop.connect() as conn:
        dump = DumpProgress(tables.tables(conn, flags), flags.compression(shop.toolset), flags.jobs)
    written, log = shop.dump(values)
    for line in log.splitlines():
        dump.feed(line)
    dump.advance(len(written))
    assert dump.share() > 0.9
    assert dump.tables_done >= dump.tables_total - 1
