"""The options of one backup: from a form or payload to pg_dump's argv, and into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from . import values as option_values
from .errors import InvalidFlags
from .options import BY_NAME, FIELDS, Field
from .toolset import Toolset

__all__ = ["FIELDS", "DumpFlags", "Field"]

DEFAULT_CODEC = "zstd:3"
FALLBACK_CODEC = "gzip:6"
EXTENSIONS = {"custom": "dump", "directory": "tar", "tar": "tar"}
PLAIN_EXTENSIONS = {"none": "sql", "gzip": "sql.gz", "zstd": "sql.zst"}


@dataclass(frozen=True)
class DumpFlags:
    """What `options.FIELDS` describes, checked; make it with `from_dict`."""

    format: str = "custom"
    compress: str = ""
    jobs: int = 1
    data_only: bool = False
    schema_only: bool = False
    schemas: tuple[str, ...] = ()
    exclude_schemas: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    exclude_tables: tuple[str, ...] = ()
    exclude_table_data: tuple[str, ...] = ()
    large_objects: bool | None = None
    section: tuple[str, ...] = ()
    clean: bool = False
    if_exists: bool = False
    create: bool = False
    no_owner: bool = False
    no_privileges: bool = False
    inserts: bool = False
    column_inserts: bool = False
    rows_per_insert: int = 0
    on_conflict_do_nothing: bool = False
    lock_wait_timeout: int = 60
    encoding: str = ""
    role: str = ""
    no_comments: bool = False
    no_tablespaces: bool = False
    no_publications: bool = False
    no_subscriptions: bool = False
    no_security_labels: bool = False
    no_toast_compression: bool = False
    no_unlogged_table_data: bool = False
    no_table_access_method: bool = False
    no_policies: bool = False
    statistics: bool = False
    extensions: tuple[str, ...] = ()
    exclude_extensions: tuple[str, ...] = ()
    disable_triggers: bool = False
    enable_row_security: bool = False
    load_via_partition_root: bool = False
    quote_all_identifiers: bool = False
    serializable_deferrable: bool = False

    @classmethod
    def from_dict(cls, values: object) -> DumpFlags:
        """From JSON of any origin; absent keys take their default.

        Raises InvalidFlags with every problem found: unknown keys, wrong types and ranges, and, when there
        are none of these, options that contradict each other.
        """
        if not isinstance(values, Mapping):
            raise InvalidFlags(["The options of a backup must be a JSON object."])
        problems = [f"There is no option {key!r}." for key in values if key not in BY_NAME]
        for field in FIELDS:
            if field.name in values:
                problems += option_values.check(field, values[field.name])
        if problems:
            raise InvalidFlags(problems)
        flags = cls(**{key: frozen(value) for key, value in values.items()})
        if problems := _contradictions(flags):
            raise InvalidFlags(problems)
        return flags

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as JSON takes it; `from_dict` reads it back."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    def extension(self) -> str:
        """Of the artifact: dump, sql, sql.gz, sql.zst or tar."""
        return EXTENSIONS.get(self.format) or PLAIN_EXTENSIONS[self._codec()]

    def compression(self, toolset: Toolset) -> str:
        """What these tools will compress with, e.g. "zstd:3", "gzip:6" or "none"."""
        if self.compress:
            return self.compress
        if self.format in ("plain", "tar"):
            return "none"
        return DEFAULT_CODEC if "zstd" in toolset.compressors else FALLBACK_CODEC

    def dumps_rows(self) -> bool:
        return not self.schema_only and (not self.section or "data" in self.section)

    def dumps_large_objects(self) -> bool:
        """As pg_dump decides it (see -b in its manual)."""
        if self.large_objects is not None:
            return self.large_objects and self.dumps_rows()
        return self.dumps_rows() and not (self.schemas or self.tables or self.extensions)

    def argv(self, toolset: Toolset, directory: Path | None = None) -> list[str]:
        """The whole command; where to connect is in the environment (Conninfo.environment).

        The dump goes to stdout, in directory format into `directory`, which must not exist or be empty.
        Raises InvalidFlags naming what these tools are too old for.
        """
        if problems := self._too_new_for(toolset):
            raise InvalidFlags(problems)
        if (self.format == "directory") != (directory is not None):
            raise ValueError("a directory is for the directory format, and the format for a directory")
        argv = [str(toolset.tool("pg_dump")), "--no-password", "--verbose", f"--format={self.format}"]
        argv.append(f"--compress={_codec_argument(self.compression(toolset), toolset.major)}")
        if self.schemas or self.tables or self.extensions:
            argv.append("--strict-names")
        for field in FIELDS:
            argv += _arguments(field, getattr(self, field.name), toolset.major)
        return argv if directory is None else [*argv, f"--file={directory}"]

    def in_words(self) -> str:
        """One line for people, e.g. "custom format, compressed with zstd:9, schema only"."""
        words = [f"{self.format} format"]
        if self.compress:
            words.append("uncompressed" if self.compress == "none" else f"compressed with {self.compress}")
        given = self.to_dict().keys() - {"format", "compress"}
        words += [
            option_in_words(field, getattr(self, field.name)) for field in FIELDS if field.name in given
        ]
        return ", ".join(words)

    def _codec(self) -> str:
        return (self.compress or "none").partition(":")[0]

    def _too_new_for(self, toolset: Toolset) -> list[str]:
        problems = [
            f"{field.name} needs pg_dump {field.since}; the client tools for this server are {toolset.label}."
            for field in FIELDS
            if field.since > toolset.major and field.name in self.to_dict()
        ]
        codec = self.compression(toolset).partition(":")[0]
        if codec not in toolset.compressors:
            problems.append(
                f"compress {self.compress}: pg_dump {toolset.label}, the client for this server, has no "
                f"{codec}; choose gzip, or leave compress empty."
            )
        return problems


def _contradictions(flags: DumpFlags) -> list[str]:
    inserts = flags.inserts or flags.column_inserts or flags.rows_per_insert
    rules = (
        (flags.jobs > 1 and flags.format != "directory", "jobs: dumping in parallel needs format directory."),
        (
            flags.format == "tar" and flags._codec() != "none",
            "compress: the tar format takes no compression.",
        ),
        (
            flags.format == "plain" and flags._codec() == "lz4",
            "compress: plain dumps are kept as zstd, gzip or uncompressed, not as lz4.",
        ),
        (flags.data_only and flags.schema_only, "data_only and schema_only exclude each other."),
        (
            bool(flags.section) and (flags.data_only or flags.schema_only),
            "section says which parts to dump; data_only and schema_only cannot be added.",
        ),
        (
            flags.clean and flags.data_only,
            "clean and data_only exclude each other: nothing would be created.",
        ),
        (flags.if_exists and not flags.clean, "if_exists needs clean."),
        (
            flags.on_conflict_do_nothing and not inserts,
            "on_conflict_do_nothing needs inserts, column_inserts or rows_per_insert.",
        ),
        (
            bool(flags.tables) and bool(flags.schemas or flags.exclude_schemas),
            "schemas and exclude_schemas are ignored by pg_dump when tables are named; write schema.table.",
        ),
        (flags.disable_triggers and not flags.data_only, "disable_triggers needs data_only."),
    )
    return [message for broken, message in rules if broken]


def frozen(value: object) -> Any:
    """A value as JSON gives it, as these classes keep it."""
    return tuple(value) if isinstance(value, list) else value


def _codec_argument(codec: str, major: int) -> str:
    """pg_dump before 16 takes a gzip level only; 14 would read "zstd:3" as 0 and not say so."""
    if major >= 16:
        return codec
    return "0" if codec == "none" else codec.partition(":")[2] or "6"


def _arguments(field: Field, value: Any, major: int) -> list[str]:
    if field.name in ("format", "compress"):
        return []
    if field.name == "jobs":
        return [f"--jobs={value}"] if value > 1 else []
    if field.name == "lock_wait_timeout":
        return [f"--lock-wait-timeout={value * 1000}"] if value else []
    if field.kind == "either":
        name = "large-objects" if major >= 16 else "blobs"
        return [] if value is None else [f"--{name}" if value else f"--no-{name}"]
    if field.kind == "switch":
        return [f"--{field.option}"] if value else []
    if isinstance(value, tuple):
        return [f"--{field.option}={item}" for item in value]
    return [f"--{field.option}={value}"] if value else []


def option_in_words(field: Field, value: Any) -> str:
    """E.g. "only these tables: a b"."""
    label = field.label.removeprefix("… ").lower()
    if field.kind == "either":
        return label if value else f"without {label}"
    if field.kind == "switch":
        return label
    if isinstance(value, tuple):
        return f"{label}: {' '.join(value)}"
    return f"{label}: {value}"
