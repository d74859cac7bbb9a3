"""What a restore may be told: the options of pg_restore that people use, and pgbr's own.

The one list that validation, argv and forms are made from, as `options` is for dumps.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .options import SECTIONS, Field, Group
from .script.policy import LEFT_OUT

MODES = ("new", "empty", "replace", "existing")
# Choosing by schema and table goes through a list of the archive's contents (archive.select): pg_restore's
# own --schema and --table take exact names only, and leave out a chosen table's indexes and constraints.
SELECTION = ("schemas", "exclude_schemas", "tables", "exclude_tables")


def _switch(name: str, label: str, help: str, group: Group, since: int = 0) -> Field:
    return Field(name, "switch", name.replace("_", "-"), label, help, group, since)


RESTORE_FIELDS = (
    Field("missing_roles", "choice", "missing-roles", "Roles the server lacks",
          "refuse: do not begin. create: as the source's server has them, which a backup of pgbr's and a "
          "migration know. skip: without owners and privileges, so everything belongs to whoever restores.",
          "common", choices=("refuse", "create", "skip")),
    Field("jobs", "number", "jobs", "Parallel jobs",
          "Tables and indexes restored at the same time, each over a connection of its own. 0: as many as "
          "fit.", "common", high=64),
    _switch("analyze", "ANALYZE afterwards", "A restored database plans badly until it has statistics.",
            "common"),
    Field("keep_days", "number", "keep-days", "Keep the replaced database",
          "Days until the database that was replaced is dropped; 0: until you drop it.", "common", high=3650),
    _switch("accept_errors", "Accept errors",
            "Go on after errors and call the restore completed, with warnings. What failed is missing from "
            "the database.", "common"),
    Field("schemas", "patterns", "schema", "Only these schemas",
          "Patterns as in psql: * and ? match, double quotes keep upper case. Each must match.", "what"),
    Field("exclude_schemas", "patterns", "exclude-schema", "Not these schemas",
          "Patterns of schemas to leave out.", "what"),
    Field("tables", "patterns", "table", "Only these tables",
          "Patterns of tables, views and sequences, as schema.table. Each must match. They bring their "
          "indexes, constraints, sequences, triggers and comments.", "what", dots=1),
    Field("exclude_tables", "patterns", "exclude-table", "Not these tables",
          "Patterns of tables to leave out.", "what", dots=1),
    _switch("data_only", "Data only", "Rows into tables that exist, but no definitions.", "what"),
    _switch("schema_only", "Schema only", "Definitions, but no rows.", "what"),
    Field("section", "sections", "section", "Sections",
          "pre-data: definitions; data: rows; post-data: indexes, constraints, triggers. None chosen: all.",
          "what", choices=SECTIONS),
    _switch("clean", "Drop before creating",
            "In a database with data: drops each object of the dump before it is created anew.", "how"),
    _switch("if_exists", "… if it exists", "With the former: no error for what is not there.", "how"),
    _switch("create", "Create the database",
            "With the source's encoding, locale and settings; “new” and “replace” do so anyway.", "how"),
    Field("single_transaction", "either", "single-transaction", "Single transaction",
          "All or nothing, in one job. Unset: yes into an existing database unless errors are accepted or "
          "parallel jobs asked for.", "how"),
    _switch("exit_on_error", "Stop at the first error",
            "Otherwise it goes on to list all errors, and fails all the same unless errors are accepted.",
            "how"),
    _switch("no_owner", "Without owners", "Everything belongs to whoever restores.", "how"),
    _switch("no_privileges", "Without privileges", "No GRANT and REVOKE.", "how"),
    Field("role", "text", "role", "Role",
          "SET ROLE to this before restoring, so that it owns what is created.", "how"),
    _switch("disable_triggers", "Disable triggers",
            "Data only: triggers and foreign keys rest while it loads. Takes a superuser.", "how"),
    _switch("no_tablespaces", "Without tablespaces", "Everything goes into the default tablespace.",
            "advanced"),
    _switch("no_comments", "Without comments", "No COMMENT statements.", "advanced"),
    _switch("no_extension_comments", "Without comments on extensions",
            "Only an extension's owner may comment on it: on managed servers that is not you.", "advanced"),
    _switch("no_publications", "Without publications", "For logical replication.", "advanced"),
    _switch("no_subscriptions", "Without subscriptions", "For logical replication.", "advanced"),
    _switch("no_security_labels", "Without security labels", "No SECURITY LABEL statements.", "advanced"),
    _switch("no_policies", "Without row security policies", "No CREATE POLICY.", "advanced", 18),
    _switch("enable_row_security", "Obey row security",
            "Loads only rows that the policies let you write, instead of failing.", "advanced"),
)  # fmt: skip
RESTORE_BY_NAME: Mapping[str, Field] = MappingProxyType({field.name: field for field in RESTORE_FIELDS})
# Not options of pg_restore, or not handed to it.
OWN = frozenset(
    {"missing_roles", "analyze", "keep_days", "accept_errors", "create", "no_extension_comments", *SELECTION}
)
# What a script of SQL can be told; the rest chooses from an archive.
FOR_SQL = frozenset(
    {"analyze", "keep_days", "accept_errors", "create", "single_transaction", "exit_on_error", "role"}
    | LEFT_OUT.keys()
)

PRESETS: Mapping[str, Mapping[str, bool]] = MappingProxyType(
    {
        "same": {},
        "other": {"no_owner": True, "no_privileges": True},
        "managed": {
            "no_owner": True,
            "no_privileges": True,
            "no_tablespaces": True,
            "no_extension_comments": True,
            "no_subscriptions": True,
            "no_security_labels": True,
        },
    }
)
PRESET_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "same": "Same server: everything as it was",
        "other": "Other server: without owners and privileges",
        "managed": "Managed cloud: also without tablespaces, subscriptions, security labels and comments on "
        "extensions",
    }
)
