"""What a backup may be told: each option of pg_dump, what it means, and which values it takes.

The one list that validation, argv and forms are made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["choice", "codec", "switch", "either", "number", "text", "patterns", "sections"]
Group = Literal["common", "what", "how", "advanced"]
SECTIONS = ("pre-data", "data", "post-data")
FORMATS = ("custom", "directory", "plain", "tar")


@dataclass(frozen=True)
class Field:
    """One option: `name` in DumpFlags, `option` of pg_dump (without dashes), words for a form.

        `kind` fixes the value: choice and text a str, codec "CODEC[:LEVEL]", switch a bool, either None or a
    bool,
        number an int from `low` to `high`, patterns a list of psql patterns (`dots` they may hold at most),
    sections
        a list of SECTIONS. `since` is the major of pg_dump that first knew it.
    """

    name: str
    kind: Kind
    option: str
    label: str
    help: str
    group: Group
    since: int = 0
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    dots: int = 0


def _switch(name: str, label: str, help: str, group: Group, since: int = 0) -> Field:
    return Field(name, "switch", name.replace("_", "-"), label, help, group, since)


def _patterns(
    name: str, option: str, label: str, help: str, dots: int, group: Group, since: int = 0
) -> Field:
    return Field(name, "patterns", option, label, help, group, since, dots=dots)


FIELDS = (
    Field("format", "choice", "format", "Format",
          "custom: one compressed file, restores selectively and in parallel. directory: dumped in parallel, "
          "kept as one tar. plain: SQL text. tar: uncompressed; each table passes through a temporary file.",
          "common", choices=FORMATS),
    Field("compress", "codec", "compress", "Compression",
          "zstd:1 to zstd:22, gzip:1 to gzip:9, lz4:1 to lz4:12, or none. Empty: none for plain and tar, "
          "else zstd:3 (gzip:6 where the client tools lack zstd).", "common"),
    Field("jobs", "number", "jobs", "Parallel jobs",
          "Tables dumped at the same time, each over a connection of its own; directory format only.",
          "common", low=1, high=64),
    _switch("data_only", "Data only", "Rows and large objects, but no definitions.", "what"),
    _switch("schema_only", "Schema only", "Definitions, but no rows.", "what"),
    _patterns("schemas", "schema", "Only these schemas",
              "Patterns as in psql: * and ? match, double quotes keep upper case. Each must match.",
              0, "what"),
    _patterns("exclude_schemas", "exclude-schema", "Not these schemas", "Patterns of schemas to leave out.",
              0, "what"),
    _patterns("tables", "table", "Only these tables",
              "Patterns of tables, views and sequences, as schema.table. Each must match. "
              "What they depend on is not added.", 1, "what"),
    _patterns("exclude_tables", "exclude-table", "Not these tables", "Patterns of tables to leave out.",
              1, "what"),
    _patterns("exclude_table_data", "exclude-table-data", "Without the rows of",
              "Patterns of tables that are backed up empty.", 1, "what"),
    Field("large_objects", "either", "large-objects", "Large objects",
          "Unset: included unless only some schemas or tables are backed up, or the schema only.", "what"),
    Field("section", "sections", "section", "Sections",
          "pre-data: definitions; data: rows; post-data: indexes, constraints, triggers. None chosen: all.",
          "what", choices=SECTIONS),
    _switch("clean", "Drop before creating",
            "Plain format: DROP statements first. Archives decide at restore.", "how"),
    _switch("if_exists", "… if it exists", "With the former: no error for what is not there.", "how"),
    _switch("create", "Create the database", "Plain format: CREATE DATABASE and connect to it first.", "how"),
    _switch("no_owner", "Without owners", "Plain format: objects belong to whoever restores.", "how"),
    _switch("no_privileges", "Without privileges", "No GRANT and REVOKE.", "how"),
    _switch("inserts", "INSERT statements", "Instead of COPY: slow to restore, loads anywhere.", "how"),
    _switch("column_inserts", "INSERT with column names", "As INSERT statements, naming every column.",
            "how"),
    Field("rows_per_insert", "number", "rows-per-insert", "Rows per INSERT",
          "As INSERT statements of so many rows each; 0 is off.", "how", high=1_000_000),
    _switch("on_conflict_do_nothing", "ON CONFLICT DO NOTHING", "For INSERT statements only.", "how"),
    Field("lock_wait_timeout", "number", "lock-wait-timeout", "Wait for locks",
          "Seconds to wait for a table another session has locked; then the backup fails. 0: forever.",
          "how", high=86_400),
    Field("encoding", "text", "encoding", "Encoding", "Of the dump; empty: the database's own.", "advanced"),
    Field("role", "text", "role", "Role", "SET ROLE to this before dumping.", "advanced"),
    _switch("no_comments", "Without comments", "No COMMENT statements.", "advanced"),
    _switch("no_tablespaces", "Without tablespaces", "Everything restores into the default tablespace.",
            "advanced"),
    _switch("no_publications", "Without publications", "For logical replication.", "advanced"),
    _switch("no_subscriptions", "Without subscriptions", "For logical replication.", "advanced"),
    _switch("no_security_labels", "Without security labels", "No SECURITY LABEL statements.", "advanced"),
    _switch("no_toast_compression", "Without TOAST compression methods", "The target's default is used.",
            "advanced"),
    _switch("no_unlogged_table_data", "Without rows of unlogged tables", "They are backed up empty.",
            "advanced"),
    _switch("no_table_access_method", "Without table access methods", "The target's default.",
            "advanced", 15),
    _switch("no_policies", "Without row security policies", "No CREATE POLICY.", "advanced", 18),
    _switch("statistics", "Planner statistics", "So that a restored database plans well at once.",
            "advanced", 18),
    _patterns("extensions", "extension", "Only these extensions", "Patterns of extensions. Each must match.",
              0, "advanced"),
    _patterns("exclude_extensions", "exclude-extension", "Not these extensions", "Patterns to leave out.",
              0, "advanced", 17),
    _switch("disable_triggers", "Disable triggers", "Data only, plain format: triggers rest while it loads.",
            "advanced"),
    _switch("enable_row_security", "Only visible rows",
            "Where row security hides rows, back up the visible ones instead of failing: a partial backup.",
            "advanced"),
    _switch("load_via_partition_root", "Load through the partition root", "Rows find their partition anew.",
            "advanced"),
    _switch("quote_all_identifiers", "Quote all identifiers", "For a target of another major.", "advanced"),
    _switch("serializable_deferrable", "Serializable snapshot",
            "Waits for a moment without anomalies; for databases that rely on SERIALIZABLE.", "advanced"),
)  # fmt: skip
BY_NAME: Mapping[str, Field] = {field.name: field for field in FIELDS}
