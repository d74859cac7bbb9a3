from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.options import FIELDS
from jobs.pgtools.toolset import Toolset

OLD = Toolset(14, (14, 23), Path("/pg14"), None, frozenset({"none", "gzip"}))
NEW = Toolset(17, (17, 11), Path("/pg17"), None, frozenset({"none", "gzip", "lz4", "zstd"}))
BARE = Toolset(17, (17, 0), Path("/pg17"), None, frozenset({"none", "gzip"}))
BASE = ["--no-password", "--verbose"]

REFUSED: list[tuple[Any, list[str]]] = [
    (None, ["must be a JSON object"]),
    (["format"], ["must be a JSON object"]),
    ({"colour": "red"}, ["There is no option 'colour'"]),
    ({"format": "xml"}, ["format must be one of custom, directory, plain, tar"]),
    ({"format": 3}, ["format must be text"]),
    ({"clean": "yes"}, ["clean must be true or false"]),
    ({"large_objects": "no"}, ["large_objects must be true, false or unset"]),
    ({"jobs": 0, "format": "directory"}, ["jobs must be a whole number from 1 to 64"]),
    ({"jobs": 65, "format": "directory"}, ["jobs must be a whole number from 1 to 64"]),
    ({"jobs": True}, ["jobs must be a whole number"]),
    ({"lock_wait_timeout": -1}, ["lock_wait_timeout must be a whole number from 0"]),
    ({"compress": "brotli:3"}, ["compress must be zstd, gzip, lz4"]),
    ({"compress": "zstd:23"}, ["the level of zstd must be from 1 to 22"]),
    ({"compress": "zstd:"}, ["the level of zstd"]),
    ({"compress": "gzip:0"}, ["the level of gzip must be from 1 to 9"]),
    ({"compress": "lz4:13"}, ["the level of lz4 must be from 1 to 12"]),
    ({"compress": "none:1"}, ["compress must be"]),
    ({"compress": "zstd:³"}, ["the level of zstd"]),
    ({"tables": "orders"}, ["tables must be a list of texts"]),
    ({"tables": [1]}, ["tables must be a list of texts"]),
    ({"tables": [""]}, ["tables: '' is empty"]),
    ({"tables": ["a\0b"]}, ["holds control characters"]),
    ({"tables": ["a\ud800"]}, ["holds control characters"]),
    ({"tables": ["x" * 1001]}, ["longer than 1000 characters"]),
    ({"tables": ["x"] * 1001}, ["more than 1000 entries"]),
    ({"tables": ['"a']}, ["double quote that is not closed"]),
    ({"tables": ["db.public.orders"]}, ["too many dots"]),
    ({"schemas": ["public.orders"]}, ["too many dots"]),
    ({"section": ["all"]}, ["section must be of pre-data, data, post-data"]),
    ({"encoding": "UTF8; x"}, ["encoding must be the name of an encoding"]),
    ({"role": "a\nb"}, ["role holds control characters"]),
    ({"clean": 1, "jobs": "2", "x": 0}, ["no option 'x'", "clean must be", "jobs must be"]),
    ({"jobs": 2}, ["parallel needs format directory"]),
    ({"format": "tar", "compress": "gzip:1"}, ["tar format takes no compression"]),
    ({"format": "plain", "compress": "lz4"}, ["not as lz4"]),
    ({"data_only": True, "schema_only": True}, ["exclude each other"]),
    ({"section": ["data"], "schema_only": True}, ["section says which parts"]),
    ({"clean": True, "data_only": True}, ["clean and data_only exclude each other"]),
    ({"if_exists": True, "jobs": 2}, ["parallel needs", "if_exists needs clean"]),
    ({"on_conflict_do_nothing": True}, ["needs inserts, column_inserts or rows_per_insert"]),
    ({"tables": ["a"], "schemas": ["b"]}, ["write schema.table"]),
    ({"tables": ["a"], "exclude_schemas": ["b"]}, ["write schema.table"]),
    ({"disable_triggers": True}, ["disable_triggers needs data_only"]),
]  # fmt: skip
ARGV: list[tuple[dict[str, Any], Toolset, list[str]]] = [
    ({}, NEW, ["--format=custom", "--compress=zstd:3", "--lock-wait-timeout=60000"]),
    ({}, OLD, ["--format=custom", "--compress=6", "--lock-wait-timeout=60000"]),
    ({}, BARE, ["--format=custom", "--compress=gzip:6", "--lock-wait-timeout=60000"]),
    ({"lock_wait_timeout": 0, "compress": "none"}, NEW, ["--format=custom", "--compress=none"]),
    ({"lock_wait_timeout": 0, "compress": "none"}, OLD, ["--format=custom", "--compress=0"]),
    ({"lock_wait_timeout": 0, "compress": "gzip"}, OLD, ["--format=custom", "--compress=6"]),
    ({"lock_wait_timeout": 0, "compress": "gzip:9"}, OLD, ["--format=custom", "--compress=9"]),
    ({"lock_wait_timeout": 0, "compress": "lz4"}, NEW, ["--format=custom", "--compress=lz4"]),
    ({"lock_wait_timeout": 0, "format": "plain"}, NEW, ["--format=plain", "--compress=none"]),
    ({"lock_wait_timeout": 0, "format": "tar"}, OLD, ["--format=tar", "--compress=0"]),
    (
        {"lock_wait_timeout": 1, "format": "plain", "large_objects": False, "clean": True, "if_exists": True},
        OLD,
        ["--format=plain", "--compress=0", "--no-blobs", "--clean", "--if-exists",
         "--lock-wait-timeout=1000"],
    ),
    (
        {"lock_wait_timeout": 1, "format": "plain", "large_objects": True, "tables": ["--x", "a b"]},
        NEW,
        ["--format=plain", "--compress=none", "--strict-names", "--table=--x", "--table=a b",
         "--large-objects", "--lock-wait-timeout=1000"],
    ),
    (
        {"lock_wait_timeout": 0, "format": "plain", "section": ["data", "post-data"], "rows_per_insert": 5},
        NEW,
        ["--format=plain", "--compress=none", "--section=data", "--section=post-data", "--rows-per-insert=5"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("values", "problems"), REFUSED)
def test_what_pg_dump_would_trip_over_is_refused_naming_every_problem(
    values: Any, problems: list[str]
) -> None:
    with pytest.raises(InvalidFlags) as caught:
        DumpFlags.from_dict(values)
    assert len(caught.value.problems) == len(problems)
    for problem in problems:
        assert any(problem in found for found in caught.value.problems)


@pytest.mark.parametrize(("values", "toolset", "expected"), ARGV)
def test_options_become_arguments_of_the_tools_at_hand(
    values: dict[str, Any], toolset: Toolset, expected: list[str]
) -> None:
    command = DumpFlags.from_dict(values).argv(toolset)
    assert command == [str(toolset.bin / "pg_dump"), *BASE, *expected]


def test_a_directory_dump_names_its_directory() -> None:
    flags = DumpFlags.from_dict({"format": "directory", "jobs": 4})
    command = flags.argv(NEW, Path("/scratch/dump"))
    assert command[-2:] == ["--lock-wait-timeout=60000", "--file=/scratch/dump"]
    assert "--jobs=4" in command
    with pytest.raises(ValueError, match="directory format"):
        flags.argv(NEW)


@pytest.mark.parametrize(
    ("values", "extension"),
    [
        ({}, "dump"),
        ({"compress": "gzip"}, "dump"),
        ({"format": "directory"}, "tar"),
        ({"format": "tar"}, "tar"),
        ({"format": "plain"}, "sql"),
        ({"format": "plain", "compress": "none"}, "sql"),
        ({"format": "plain", "compress": "gzip:9"}, "sql.gz"),
        ({"format": "plain", "compress": "zstd"}, "sql.zst"),
    ],
)
def test_the_extension_tells_what_the_artifact_is(values: dict[str, Any], extension: str) -> None:
    assert DumpFlags.from_dict(values).extension() == extension


@pytest.mark.parametrize(
    ("values", "rows", "large_objects"),
    [
        ({}, True, True),
        ({"schema_only": True}, False, False),
        ({"section": ["pre-data"]}, False, False),
        ({"section": ["data"]}, True, True),
        ({"tables": ["a"]}, True, False),
        ({"schemas": ["a"], "large_objects": True}, True, True),
        ({"large_objects": False}, True, False),
    ],
)
def test_flags_know_what_they_leave_out(values: dict[str, Any], rows: bool, large_objects: bool) -> None:
    flags = DumpFlags.from_dict(values)
    assert (flags.dumps_rows(), flags.dumps_large_objects()) == (rows, large_objects)


def test_only_what_differs_is_stored_and_read_back() -> None:
    values = {"format": "plain", "tables": ["a", "b"], "large_objects": False, "lock_wait_timeout": 5}
    flags = DumpFlags.from_dict({**values, "clean": False, "jobs": 1})
    assert flags.to_dict() == values
    assert DumpFlags.from_dict(flags.to_dict()) == flags
    assert DumpFlags().to_dict() == {}


def test_words_name_every_choice() -> None:
    flags = DumpFlags.from_dict({"compress": "zstd:9", "tables": ["a", "b"], "large_objects": False})
    assert flags.in_words() == (
        "custom format, compressed with zstd:9, only these tables: a b, without large objects"
    )


def test_every_field_has_words_for_a_form_and_a_place_in_the_flags() -> None:
    assert [field.name for field in FIELDS if not (field.label and field.help and field.option)] == []
    assert {field.name for field in FIELDS} == {field.name for field in fields(DumpFlags)}
