from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.pgtools import process
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.restore_flags import RestoreFlags, format_problems, mode_problems
from jobs.pgtools.restore_options import MODES, OWN, PRESET_LABELS, PRESETS, RESTORE_FIELDS
from jobs.pgtools.toolset import Toolset

from .conftest import toolset

NEW = Toolset(17, (17, 11), Path("/pg17"), None, frozenset({"none", "gzip", "lz4", "zstd"}))
BASE = ["/pg17/pg_restore", "--no-password", "--verbose", "--format=custom"]

REFUSED: list[tuple[Any, list[str]]] = [
    (None, ["must be a JSON object"]),
    ({"colour": "red"}, ["There is no option 'colour'"]),
    ({"clean": 1, "jobs": 65}, ["clean must be true or false", "jobs must be a whole number from 0 to 64"]),
    ({"single_transaction": "no"}, ["single_transaction must be true, false or unset"]),
    ({"missing_roles": "ignore"}, ["missing_roles must be one of refuse, create, skip"]),
    ({"keep_days": -1}, ["keep_days must be a whole number from 0"]),
    ({"section": ["all"]}, ["section must be of pre-data, data, post-data"]),
    ({"tables": ["a.b.c"]}, ["too many dots"]),
    ({"schemas": ["a.b"]}, ["too many dots"]),
    ({"role": "a\nb"}, ["role holds control characters"]),
    ({"jobs": 2, "single_transaction": True}, ["parallel jobs and a single transaction exclude each other"]),
    ({"accept_errors": True, "single_transaction": True}, ["accept_errors: a single transaction ends"]),
    ({"exit_on_error": False, "single_transaction": True}, ["exit_on_error: a single transaction ends"]),
    ({"if_exists": True}, ["if_exists needs clean"]),
    ({"data_only": True, "schema_only": True}, ["exclude each other"]),
    ({"section": ["data"], "data_only": True}, ["section says which parts"]),
    ({"section": ["data"], "schema_only": True}, ["section says which parts"]),
    ({"clean": True, "data_only": True}, ["clean and data_only exclude each other"]),
    ({"disable_triggers": True}, ["disable_triggers needs data_only"]),
]  # fmt: skip
ARGV: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {}, ["--dbname=dbname=shop", "--exit-on-error"]),
    ({}, {"dbname": None}, ["--file=-", "--exit-on-error"]),
    ({}, {"dbname": "host=x user=y"}, ["--dbname=dbname='host=x user=y'", "--exit-on-error"]),
    ({}, {"dbname": "it's \\"}, ["--dbname=dbname='it\\'s \\\\'", "--exit-on-error"]),
    ({}, {"single_transaction": True}, ["--dbname=dbname=shop", "--single-transaction", "--exit-on-error"]),
    ({"accept_errors": True}, {}, ["--dbname=dbname=shop"]),
    ({"exit_on_error": False}, {}, ["--dbname=dbname=shop"]),
    (
        {"jobs": 4},
        {"jobs": 3, "source": Path("/a dump"), "list_file": Path("/list")},
        ["--dbname=dbname=shop", "--jobs=3", "--exit-on-error", "--use-list=/list", "/a dump"],
    ),
    (
        {"missing_roles": "skip"},
        {},
        ["--dbname=dbname=shop", "--exit-on-error", "--no-owner", "--no-privileges"],
    ),
    (
        {"section": ["data", "post-data"], "role": "--x", "no_owner": True},
        {},
        ["--dbname=dbname=shop", "--exit-on-error", "--section=data", "--section=post-data", "--no-owner",
         "--role=--x"],
    ),
    (
        {"schemas": ["a"], "exclude_schemas": ["b"], "tables": ["c"], "exclude_tables": ["d"],
         "no_extension_comments": True, "analyze": False, "keep_days": 1, "create": True,
         "missing_roles": "create"},
        {},
        ["--dbname=dbname=shop", "--exit-on-error"],
    ),
]  # fmt: skip
MODE_PROBLEMS: list[tuple[dict[str, Any], str, list[str]]] = [
    ({}, "new", []),
    ({}, "empty", []),
    ({}, "replace", []),
    ({}, "existing", ["choose clean"]),
    ({"clean": True}, "existing", []),
    ({"clean": True}, "new", ["clean: the database will be a new one"]),
    ({"clean": True}, "empty", ["clean: the database is to be empty"]),
    ({"clean": True}, "replace", ["clean: it is restored into a new database beside"]),
    ({"create": True}, "new", []),
    ({"create": True}, "empty", ["create: the database is there already"]),
    ({"data_only": True}, "existing", []),
    ({"data_only": True}, "empty", ["data_only: the database is to be empty, so there are no tables"]),
    ({"section": ["data"]}, "new", ["section: the database will be a new one"]),
    ({"section": ["data"]}, "existing", []),
    ({"tables": ["orders"]}, "existing", []),
    ({}, "somewhere", ["mode must be one of new, empty, replace, existing"]),
]
ONE_TRANSACTION: list[tuple[dict[str, Any], str, bool]] = [
    ({}, "empty", True),
    ({}, "existing", True),
    ({}, "new", False),
    ({}, "replace", False),
    ({"jobs": 2}, "empty", False),
    ({"accept_errors": True}, "empty", False),
    ({"exit_on_error": False}, "empty", False),
    ({"single_transaction": False}, "empty", False),
    ({"single_transaction": True}, "new", True),
]


@pytest.mark.parametrize(("values", "problems"), REFUSED)
def test_what_pg_restore_would_trip_over_is_refused_naming_every_problem(
    values: Any, problems: list[str]
) -> None:
    with pytest.raises(InvalidFlags) as caught:
        RestoreFlags.from_dict(values)
    assert len(caught.value.problems) == len(problems)
    for problem in problems:
        assert any(problem in found for found in caught.value.problems)


@pytest.mark.parametrize(("values", "how", "expected"), ARGV)
def test_options_become_arguments(values: dict[str, Any], how: dict[str, Any], expected: list[str]) -> None:
    given: dict[str, Any] = {"source": None, "format": "custom", "dbname": "shop", **how}
    assert RestoreFlags.from_dict(values).argv(NEW, **given) == [*BASE, *expected]


def test_parallel_jobs_without_a_file_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="on disk"):
        RestoreFlags().argv(NEW, source=None, format="custom", dbname="shop", jobs=2)


def test_what_the_tools_are_too_old_for_is_named() -> None:
    with pytest.raises(InvalidFlags, match=r"no_policies needs pg_restore 18; .* are 17\.11"):
        RestoreFlags(no_policies=True).argv(NEW, source=None, format="custom", dbname="shop")


@pytest.mark.parametrize("major", [14, 18])
def test_pg_restore_knows_every_option(major: int, tmp_path: Path) -> None:
    tools = toolset(major)
    command = [str(tools.tool("pg_restore")), "--help"]
    with process.spawn(command, tools.environment() | {"PATH": os.defpath}, cwd=tmp_path) as child:
        known = child.stdout.read().decode()
    passed = [field for field in RESTORE_FIELDS if field.name not in OWN and field.since <= major]
    assert [field.option for field in passed if f"--{field.option}" not in known] == []


@pytest.mark.parametrize(("values", "mode", "problems"), MODE_PROBLEMS)
def test_options_that_do_not_go_with_the_way_to_restore_are_named(
    values: dict[str, Any], mode: str, problems: list[str]
) -> None:
    found = mode_problems(RestoreFlags.from_dict(values), mode)
    assert len(found) == len(problems)
    assert all(problem in text for problem, text in zip(problems, found, strict=True))


def test_a_script_decides_itself_what_it_drops_and_loads() -> None:
    assert [mode_problems(RestoreFlags(), mode, plain=True) for mode in MODES] == [[]] * 4


@pytest.mark.parametrize(
    ("format", "values", "named"),
    [
        ("plain", {"tables": ["a"], "clean": True, "jobs": 2}, ["jobs", "tables", "clean"]),
        ("plain", {"missing_roles": "skip", "schema_only": True}, ["missing_roles", "schema_only"]),
        ("plain", dict(PRESETS["managed"]), []),
        ("plain", {"accept_errors": True, "role": "r", "analyze": False, "keep_days": 0}, []),
        ("tar", {"jobs": 2}, ["jobs"]),
        ("tar", {"tables": ["a"]}, []),
        ("directory", {"jobs": 2}, []),
        ("custom", {"jobs": 2}, []),
    ],
)
def test_options_that_the_format_cannot_do_are_named(
    format: str, values: dict[str, Any], named: list[str]
) -> None:
    contents: Any = SimpleNamespace(format=format)
    problems = format_problems(RestoreFlags.from_dict(values), contents)
    assert [text.partition(":")[0] for text in problems] == named


@pytest.mark.parametrize(("values", "mode", "expected"), ONE_TRANSACTION)
def test_a_database_that_was_there_before_is_restored_all_or_nothing(
    values: dict[str, Any], mode: str, expected: bool
) -> None:
    assert RestoreFlags.from_dict(values).in_one_transaction(mode) is expected


def test_only_what_differs_is_stored_and_read_back() -> None:
    values = {"analyze": False, "tables": ["a", "b"], "single_transaction": False, "keep_days": 0}
    flags = RestoreFlags.from_dict({**values, "clean": False, "exit_on_error": True})
    assert flags.to_dict() == values
    assert RestoreFlags.from_dict(flags.to_dict()) == flags
    assert RestoreFlags().to_dict() == {}


def test_words_name_every_choice() -> None:
    flags = RestoreFlags.from_dict(
        {"analyze": False, "exit_on_error": False, "keep_days": 3, "tables": ["a", "b"], "no_owner": True}
    )
    assert flags.in_words() == (
        "without ANALYZE, keep the replaced database: 3 days, only these tables: a b, "
        "going on after errors, without owners"
    )
    assert RestoreFlags().in_words() == ""


def test_every_field_has_words_for_a_form_and_a_place_in_the_flags() -> None:
    assert [field.name for field in RESTORE_FIELDS if not (field.label and field.help)] == []
    assert [field.name for field in RESTORE_FIELDS] == [field.name for field in fields(RestoreFlags)]


def test_presets_are_valid_and_have_labels() -> None:
    assert PRESETS.keys() == PRESET_LABELS.keys()
    for values in PRESETS.values():
        assert RestoreFlags.from_dict(values).to_dict() == values
