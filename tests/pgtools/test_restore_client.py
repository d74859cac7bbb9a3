from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.pgtools.errors import NoClientTools
from jobs.pgtools.restore_client import choose_client, through_sql
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.toolset import Toolset
from tests import servers

from .conftest import MakePlace, toolset

CODECS = frozenset({"none", "gzip", "lz4", "zstd"})


def tools(major: int, minor: int = 1, codecs: frozenset[str] = CODECS) -> Toolset:
    return Toolset(major, (major, minor), Path(f"/pg{major}.{minor}"), None, codecs)


ALL = [tools(14), tools(16, 1), tools(16, 4), tools(17), tools(18, 0, frozenset({"none", "gzip"}))]


@pytest.mark.parametrize(
    ("reader", "target", "codec", "expected"),
    [
        (14, 14, "gzip", (14, 1)),
        (14, 15, "gzip", (16, 4)),
        (16, 14, "gzip", (16, 4)),
        (17, 16, "zstd", (17, 1)),
        (14, 18, "gzip", (18, 0)),
    ],
)
def test_the_least_client_that_reads_the_archive_and_fits_the_server(
    reader: int, target: int, codec: str, expected: tuple[int, int]
) -> None:
    assert choose_client(reader, target, ALL, codec).version == expected


@pytest.mark.parametrize(
    ("reader", "target", "codec", "found", "message"),
    [
        (14, 17, "none", [tools(16), tools(14)], r"server runs PostgreSQL 17 .*: 14\.1, 16\.1\..*install 17"),
        (17, 14, "none", [tools(16)], r"newer pg_dump: pg_restore 17 or later .*found: 16\.1\..*install 17"),
        (16, 18, "lz4", ALL, r"compressed with lz4, which .*\(18\.0\) were built without"),
        (14, 14, "none", [], "client tools found: none"),
    ],
)  # fmt: skip
def test_without_a_client_it_says_which_to_install(
    reader: int, target: int, codec: str, found: list[Toolset], message: str
) -> None:
    with pytest.raises(NoClientTools, match=message):
        choose_client(reader, target, found, codec)


def test_clients_that_set_what_an_older_server_does_not_know(make_place: MakePlace) -> None:
    place = make_place(14, "CREATE TABLE t (a int)")
    archive = place.folder / "t.dump"
    archive.write_bytes(place.dump({"schema_only": True})[0])
    for major in servers.MAJORS:
        other = replace(place, toolset=toolset(major))
        argv = RestoreFlags().argv(other.toolset, source=archive, format="custom", dbname=None)
        sets_it = b"SET transaction_timeout" in other.run(argv)[0]
        assert through_sql(other.toolset, 16) is sets_it
        assert not through_sql(other.toolset, 17)
