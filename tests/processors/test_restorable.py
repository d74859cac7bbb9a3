"""What is backed up restores: every major, every format, every codec, compared row by row."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from jobs.models import BackupJob, Storage
from tests import sample, servers

from .conftest import Backups, MakeSource, Source
from .restoring import members, restore

Samples = Callable[[int], Source]
Copy = Callable[[BackupJob, Source], str]


@pytest.fixture
def restored(backups: Backups, tmp_path: Path) -> Iterator[Copy]:
    """Restore a backup beside its source; the name of the new database."""
    made: list[tuple[Source, str]] = []

    def make(row: BackupJob, source: Source) -> str:
        name = f"copy {uuid.uuid4().hex[:8]}"
        made.append((source, name))
        restore(source.server, backups.artifact(row), row.storage_key or "", name, tmp_path / name)
        return name

    yield make
    for source, name in made:
        source.server.drop_database(name)


def assert_alike(source: Source, copy: str) -> None:
    expected = sample.rows(source.server, source.name)
    assert len(expected) > 15
    assert sample.rows(source.server, copy) == expected
    assert sample.definitions(source.server, copy) == sample.definitions(source.server, source.name)


def assert_stored_as_recorded(backups: Backups, row: BackupJob) -> None:
    backups.assert_whole(row)
    artifact = backups.artifact(row)
    assert (len(artifact), hashlib.sha256(artifact).hexdigest()) == (row.size, row.sha256)


@pytest.mark.parametrize("major", servers.MAJORS)
def test_a_custom_backup_of_every_major_restores_alike(
    backups: Backups, samples: Samples, restored: Copy, major: int
) -> None:
    source = samples(major)
    row = backups.take(source.url, {})
    assert_stored_as_recorded(backups, row)
    assert_alike(source, restored(row, source))


FORMATS: list[dict[str, Any]] = [
    {"format": "custom", "compress": "none"},
    {"format": "custom", "compress": "gzip:9"},
    {"format": "custom", "compress": "lz4"},
    {"format": "custom", "compress": "zstd:19"},
    {"format": "plain"},
    {"format": "plain", "compress": "gzip:1"},
    {"format": "plain", "compress": "zstd:1"},
    {"format": "tar"},
    {"format": "directory", "jobs": 2},
    {"format": "directory", "compress": "none"},
    {"format": "directory", "compress": "lz4:3"},
    {"format": "plain", "inserts": True, "rows_per_insert": 7, "clean": True, "if_exists": True},
]


@pytest.mark.parametrize("flags", FORMATS, ids=lambda flags: "-".join(str(value) for value in flags.values()))
def test_every_format_and_codec_restores_alike(
    backups: Backups, samples: Samples, restored: Copy, flags: dict[str, Any]
) -> None:
    source = samples(17)
    row = backups.take(source.url, flags)
    assert_stored_as_recorded(backups, row)
    assert_alike(source, restored(row, source))


@pytest.mark.parametrize("flags", [{"format": "plain", "column_inserts": True}, {"format": "directory"}])
def test_the_oldest_major_restores_alike_in_other_formats(
    backups: Backups, samples: Samples, restored: Copy, flags: dict[str, Any]
) -> None:
    source = samples(14)
    row = backups.take(source.url, flags)
    assert_alike(source, restored(row, source))


@pytest.mark.parametrize("flags", [{}, {"format": "directory", "jobs": 2}])
def test_a_bucket_holds_what_is_recorded(
    backups: Backups, samples: Samples, s3_storage: Storage, restored: Copy, flags: dict[str, Any]
) -> None:
    source = samples(17)
    row = backups.take(source.url, flags, s3_storage)
    assert_stored_as_recorded(backups, row)
    assert_alike(source, restored(row, source))


def test_a_directory_backup_is_a_tar_of_bare_names(backups: Backups, samples: Samples) -> None:
    row = backups.take(samples(17).url, {"format": "directory"})
    names = members(backups.artifact(row))
    assert "toc.dat" in names
    assert not [name for name in names if "/" in name or name.startswith(".")]


def test_names_that_are_not_utf8_are_backed_up_though_they_cannot_be_asked_for(
    backups: Backups, make_source: MakeSource
) -> None:
    source = make_source(17)
    source.server.drop_database(source.name)
    statement = (
        "CREATE DATABASE {} OWNER app ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    source.server.execute(sql.SQL(statement).format(sql.Identifier(source.name)))
    with psycopg.connect(source.url, client_encoding="SQL_ASCII") as session:
        session.execute(b"CREATE TABLE \"caf\xe9\" AS SELECT E'\\351'::text AS t, 7 AS n")
    row = backups.take(source.url, {"format": "plain"})
    assert_stored_as_recorded(backups, row)
    assert "caf\xe9" in backups.artifact(row).decode("latin-1")
    assert any("invalid byte sequence" in warning for warning in row.warnings)
    assert row.manifest is not None
    assert (row.manifest["database"]["encoding"], row.manifest["database"]["tables"]) == ("SQL_ASCII", None)
