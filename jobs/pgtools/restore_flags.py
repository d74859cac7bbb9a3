"""The options of one restore: from a form or payload to pg_restore's argv, and into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import make_conninfo

from . import values as option_values
from .errors import InvalidFlags
from .flags import frozen, option_in_words
from .options import Field
from .restore_options import FOR_SQL, MODES, OWN, RESTORE_BY_NAME, RESTORE_FIELDS, SELECTION
from .script.policy import LEFT_OUT
from .toolset import Toolset

if TYPE_CHECKING:
    from .archive.contents import Contents

PARALLEL_FORMATS = ("custom", "directory")
NOTHING_THERE = {
    "new": "the database will be a new one",
    "empty": "the database is to be empty",
    "replace": "it is restored into a new database beside the old one",
    "existing": "",
}
# Switches that are on unless somebody turns them off.
OFF_IN_WORDS = {"analyze": "without ANALYZE", "exit_on_error": "going on after errors"}


@dataclass(frozen=True)
class RestoreFlags:
    """What `restore_options.RESTORE_FIELDS` describes, checked; make it with `from_dict`."""

    missing_roles: str = "refuse"
    jobs: int = 0
    analyze: bool = True
    keep_days: int = 7
    accept_errors: bool = False
    schemas: tuple[str, ...] = ()
    exclude_schemas: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    exclude_tables: tuple[str, ...] = ()
    data_only: bool = False
    schema_only: bool = False
    section: tuple[str, ...] = ()
    clean: bool = False
    if_exists: bool = False
    create: bool = False
    single_transaction: bool | None = None
    exit_on_error: bool = True
    no_owner: bool = False
    no_privileges: bool = False
    role: str = ""
    disable_triggers: bool = False
    no_tablespaces: bool = False
    no_comments: bool = False
    no_extension_comments: bool = False
    no_publications: bool = False
    no_subscriptions: bool = False
    no_security_labels: bool = False
    no_policies: bool = False
    enable_row_security: bool = False

    @classmethod
    def from_dict(cls, values: object) -> RestoreFlags:
        """From JSON of any origin; absent keys take their default.

        Raises InvalidFlags with every problem found: unknown keys, wrong types and ranges, and, when there
        are none of these, options that contradict each other.
        """
        if not isinstance(values, Mapping):
            raise InvalidFlags(["The options of a restore must be a JSON object."])
        problems = [f"There is no option {key!r}." for key in values if key not in RESTORE_BY_NAME]
        for field in RESTORE_FIELDS:
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

    @property
    def stops_at_errors(self) -> bool:
        """Accepting errors implies going on after them."""
        return self.exit_on_error and not self.accept_errors

    @property
    def restores_owners(self) -> bool:
        return not self.no_owner and self.missing_roles != "skip"

    @property
    def restores_privileges(self) -> bool:
        return not self.no_privileges and self.missing_roles != "skip"

    @property
    def left_out(self) -> frozenset[str]:
        """The names among script.policy.LEFT_OUT that were chosen."""
        return frozenset(name for name in LEFT_OUT if getattr(self, name))

    @property
    def selects(self) -> bool:
        """Whether only some schemas or tables are restored."""
        return any(getattr(self, name) for name in SELECTION)

    @property
    def restores_definitions(self) -> bool:
        return not self.data_only and (not self.section or "pre-data" in self.section)

    @property
    def restores_rows(self) -> bool:
        return not self.schema_only and (not self.section or "data" in self.section)

    def in_one_transaction(self, mode: str) -> bool:
        """As chosen; else yes where the database was there before, so that a failure leaves it as it was."""
        if self.single_transaction is not None:
            return self.single_transaction
        return mode in ("empty", "existing") and self.stops_at_errors and self.jobs <= 1

    def argv(
        self,
        toolset: Toolset,
        *,
        source: Path | None,
        format: str,
        dbname: str | None,
        list_file: Path | None = None,
        jobs: int = 1,
        single_transaction: bool = False,
    ) -> list[str]:
        """The whole command; where to connect is in the environment (Conninfo.environment).

        The archive is `source` (for "directory" a folder) or comes by stdin. Without `dbname` the SQL goes to
        stdout instead of a server, in which case jobs and transaction are the reader's affair. Selected
        schemas and tables are in `list_file`. Raises InvalidFlags naming what these tools are too old for.
        """
        if problems := self.too_new_for(toolset):
            raise InvalidFlags(problems)
        if jobs > 1 and (single_transaction or source is None or format not in PARALLEL_FORMATS):
            raise ValueError("parallel jobs need a custom archive or directory on disk, and no transaction")
        argv = [str(toolset.tool("pg_restore")), "--no-password", "--verbose", f"--format={format}"]
        if dbname is None:
            argv.append("--file=-")
        else:
            # libpq takes a name like "host=… user=…" for a whole address: a database could be called that.
            argv.append(f"--dbname={make_conninfo('', dbname=dbname)}")
            argv += [f"--jobs={jobs}"] if jobs > 1 else []
            argv += ["--single-transaction"] if single_transaction else []
        argv += ["--exit-on-error"] if self.stops_at_errors else []
        for field in RESTORE_FIELDS:
            argv += self._arguments(field)
        argv += [f"--use-list={list_file}"] if list_file else []
        return argv if source is None else [*argv, str(source)]

    def in_words(self) -> str:
        """One line for people, e.g. "data only, disable triggers"; "" when nothing was chosen."""
        given = self.to_dict().keys()
        chosen = [field for field in RESTORE_FIELDS if field.name in given]
        return ", ".join(_in_words(field, getattr(self, field.name)) for field in chosen)

    def _arguments(self, field: Field) -> list[str]:
        if field.name in OWN or field.name in ("jobs", "single_transaction", "exit_on_error"):
            return []
        if field.name in ("no_owner", "no_privileges"):
            wanted = self.restores_owners if field.name == "no_owner" else self.restores_privileges
            return [] if wanted else [f"--{field.option}"]
        value = getattr(self, field.name)
        if field.kind == "switch":
            return [f"--{field.option}"] if value else []
        if isinstance(value, tuple):
            return [f"--{field.option}={item}" for item in value]
        return [f"--{field.option}={value}"] if value else []

    def too_new_for(self, toolset: Toolset) -> list[str]:
        """Which options these tools do not know yet, a sentence each."""
        return [
            f"{field.name} needs pg_restore {field.since}; the client tools for this server are "
            f"{toolset.label}."
            for field in RESTORE_FIELDS
            if field.since > toolset.major and field.name in self.to_dict()
        ]


def _contradictions(flags: RestoreFlags) -> list[str]:
    one_transaction = flags.single_transaction is True
    rules = (
        (
            one_transaction and flags.jobs > 1,
            "jobs: parallel jobs and a single transaction exclude each other.",
        ),
        (
            one_transaction and flags.accept_errors,
            "accept_errors: a single transaction ends with its first error; choose one of the two.",
        ),
        (
            one_transaction and not flags.exit_on_error,
            "exit_on_error: a single transaction ends with its first error; choose one of the two.",
        ),
        (flags.if_exists and not flags.clean, "if_exists needs clean."),
        (flags.data_only and flags.schema_only, "data_only and schema_only exclude each other."),
        (
            bool(flags.section) and (flags.data_only or flags.schema_only),
            "section says which parts to restore; data_only and schema_only cannot be added.",
        ),
        (
            flags.clean and flags.data_only,
            "clean and data_only exclude each other: nothing would be created.",
        ),
        (flags.disable_triggers and not flags.data_only, "disable_triggers needs data_only."),
    )
    return [message for broken, message in rules if broken]


def _in_words(field: Field, value: Any) -> str:
    if value is False and field.name in OFF_IN_WORDS:
        return OFF_IN_WORDS[field.name]
    words = option_in_words(field, value)
    return f"{words} days" if field.name == "keep_days" and value else words


def mode_problems(flags: RestoreFlags, mode: str, *, plain: bool = False) -> list[str]:
    """What of the options does not go with the way to restore, a sentence each.

    `plain` is for SQL, which itself decides whether it drops, creates or only loads.
    """
    if mode not in MODES:
        return [f"mode must be one of {', '.join(MODES)}."]
    there_before = mode in ("empty", "existing")
    rules = (
        (flags.clean and mode != "existing", f"clean: {NOTHING_THERE[mode]}, so there is nothing to drop."),
        (
            flags.create and there_before,
            "create: the database is there already; restore as “new” or “replace” to have it created.",
        ),
        (
            not plain and mode != "existing" and not flags.restores_definitions,
            f"{_rows_only(flags)}: {NOTHING_THERE[mode]}, so there are no tables to load into; restore as "
            "“existing”, or the definitions too.",
        ),
        (
            not plain and mode == "existing" and flags.restores_definitions
            and not (flags.clean or flags.selects),
            "Into a database that holds data, choose clean (drop each object before it is created), "
            "data_only, or some schemas or tables; else what is there already is in the way. “replace” needs "
            "none of these.",
        ),
    )  # fmt: skip
    return [message for broken, message in rules if broken]


def format_problems(flags: RestoreFlags, contents: Contents) -> list[str]:
    """What of the options the artifact's format cannot do, a sentence each."""
    given = flags.to_dict()
    if contents.format == "plain":
        names = [field.name for field in RESTORE_FIELDS if field.name in given.keys() - FOR_SQL]
        return [f"{name}: the dump is plain SQL and does as it is written; leave this out." for name in names]
    if contents.format == "tar" and flags.jobs > 1:
        return ["jobs: pg_restore reads a tar archive with one job only."]
    return []


def _rows_only(flags: RestoreFlags) -> str:
    return "data_only" if flags.data_only else "section"
