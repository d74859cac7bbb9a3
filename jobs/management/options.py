"""The options of pg_dump and pg_restore as options of a command, made from the one list of each."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import CommandParser

from jobs.pgtools.options import Field


def add_options(
    parser: CommandParser,
    options: Iterable[Field],
    flags: type[Any],
    titles: Mapping[str, str],
    prefix: str = "",
) -> None:
    """One option for each, under the titles of their groups. `flags` is the class that holds them, with their
    defaults; `prefix` tells the two sides of a migration apart."""
    groups = {name: parser.add_argument_group(title) for name, title in titles.items()}
    for field in options:
        argument = _argument(field, getattr(flags, field.name))
        argument["dest"] = prefix + field.name
        groups[field.group].add_argument(f"--{prefix}{field.option}", **argument)


def given(options: Iterable[Field], values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """What was said of them on the command line, by the names that flags know them by."""
    return {field.name: values[prefix + field.name] for field in options if prefix + field.name in values}


def _argument(field: Field, default: object) -> dict[str, Any]:
    """How argparse takes the option. One not given is left out, so that defaults live in one place."""
    shared: dict[str, Any] = {
        "default": argparse.SUPPRESS,
        "help": (field.help or field.label).replace("%", "%%"),
    }
    if field.kind == "either" or (field.kind == "switch" and default):
        return shared | {"action": argparse.BooleanOptionalAction}
    if field.kind == "switch":
        return shared | {"action": "store_true"}
    if field.kind == "number":
        return shared | {"type": int, "metavar": "N"}
    if field.kind == "patterns":
        return shared | {"action": "append", "metavar": "PATTERN"}
    if field.kind == "sections":
        return shared | {"action": "append", "choices": field.choices}
    if field.kind == "choice":
        return shared | {"choices": field.choices}
    return shared | {"metavar": "CODEC[:LEVEL]" if field.kind == "codec" else field.option.upper()}
