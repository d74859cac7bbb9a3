from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.archive.entry import Entry
from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.target import TargetFacts
from jobs.pgtools.toolset import Toolset
from jobs.processors.preflight import Finding, findings, stops

CODECS = frozenset({"none", "gzip", "lz4", "zstd"})
TOOLS = [Toolset(major, (major, 5), Path(f"/pg{major}"), None, CODECS) for major in (14, 15, 16, 17)]
CREATE = (
    "CREATE DATABASE shop WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';"
)


def entry(number: int, kind: str, name: str, *, section: str = "pre-data", **more: Any) -> Entry:
    values = {"schema": "public", "owner": "ada", "definition": "", "droppable": section != "data"}
    fields: dict[str, Any] = {**values, "copy": "", "depends_on": (), "has_data": section == "data", **more}
    return Entry(dump_id=number, kind=kind, name=name, section=section, **fields)


ENTRIES = (
    entry(1, "DATABASE", "shop", schema="", definition=CREATE),
    entry(2, "TABLE", "orders", definition="CREATE TABLE public.orders (id integer);"),
    entry(3, "TABLE", "events", owner="eve", tablespace="fast"),
    entry(4, "TABLE DATA", "orders", section="data", depends_on=(2,)),
    entry(5, "ACL", "TABLE orders", owner="ada", definition="GRANT SELECT ON TABLE public.orders TO reader;",
          depends_on=(2,), droppable=False),
    entry(6, "POLICY", "orders mine", definition="CREATE POLICY mine ON public.orders TO clerk USING (true);",
          depends_on=(2,), section="post-data"),
)  # fmt: skip
POSTGIS = (
    entry(7, "EXTENSION", "postgis", schema="", owner=""),
    entry(8, "COMMENT", "EXTENSION postgis", schema="", owner="", droppable=False, depends_on=(7,)),
)
ARCHIVE = Toc("custom", (1, 15, 0), "zstd", "shop", "16.4", "16.4", None, ENTRIES)
ROLES = frozenset({"ada", "eve", "reader", "clerk", "app"})
EMPTY = TargetFacts(
    name="shop", version_num=160004, version="16.4", system_identifier="7", in_recovery=False,
    read_only=False, user="app", superuser=False, may_create_database=True, may_create_roles=False,
    lock_budget=7808, roles=ROLES, assumable=ROLES, tablespaces=frozenset({"pg_default", "fast"}),
    extensions=frozenset({"plpgsql", "hstore"}), superuser_extensions=frozenset(), exists=True, oid=5,
    owner="app", encoding="UTF8", size_bytes=8_000_000, owns=True, may_create=True, empty=True,
)  # fmt: skip
FULL = replace(EMPTY, empty=False, tables=214, objects=300, size_bytes=3_200_000_000)
ABSENT = replace(EMPTY, exists=False, oid=None, owner="", size_bytes=None, owns=False, empty=False)
GIVEN: dict[str, Any] = {
    "free_bytes": None, "needed_bytes": 0, "has_globals": False, "source_major": None, "protected": False,
}  # fmt: skip


def found(
    facts: TargetFacts = EMPTY,
    mode: str = "empty",
    flags: dict[str, Any] | None = None,
    toc: Toc | None = ARCHIVE,
    **given: Any,
) -> list[Finding]:
    contents = Contents("custom" if toc else "plain", "none", toc, plain_server_version="16.4")
    tools = given.pop("tools", TOOLS)
    return findings(
        contents, facts, RestoreFlags.from_dict(flags or {}), mode, tools, **(GIVEN | given)
    )  # fmt: skip


def words(finding: Finding) -> str:
    return f"{finding.level}: {finding.title} | {finding.detail} | {finding.remedy}"


def with_entries(*entries: Entry) -> Toc:
    return replace(ARCHIVE, entries=(*ENTRIES, *entries))


def many(count: int) -> Toc:
    return with_entries(*(entry(number, "TABLE", f"t{number}") for number in range(10, 10 + count)))


# What is asked, and words of the one finding that is to be there.
CASES: list[tuple[dict[str, Any], str, str]] = [
    # The target and the way
    ({"protected": True}, "stop", 'The database "shop" is protected'),
    ({"facts": replace(EMPTY, in_recovery=True)}, "stop", "The server is a standby"),
    ({"facts": replace(EMPTY, read_only=True)}, "stop", "Sessions of this login are read-only"),
    ({"facts": replace(EMPTY, database_read_only=True)}, "stop", 'ALTER DATABASE "shop" RESET default_'),
    ({"facts": EMPTY, "mode": "new"}, "stop", 'There is a database "shop" already'),
    ({"facts": ABSENT, "mode": "new"}, "ok", 'The database "shop" will be created'),
    ({"facts": replace(ABSENT, may_create_database=False), "mode": "new"}, "stop",
     'ALTER ROLE "app" CREATEDB;'),
    ({"facts": ABSENT, "mode": "empty"}, "stop", 'There is no database "shop"'),
    ({"facts": ABSENT, "mode": "replace"}, "stop", 'There is no database "shop"'),
    ({"facts": ABSENT, "mode": "existing", "flags": {"clean": True}}, "stop", 'There is no database "shop"'),
    ({}, "ok", 'The database "shop" is empty'),
    ({"facts": FULL}, "stop", 'The database "shop" is not empty: 214 tables, 3.20 GB'),
    ({"facts": replace(FULL, tables=0)}, "stop", "is not empty: no tables but 300 other objects, 3.20 GB"),
    ({"facts": replace(EMPTY, may_create=False)}, "stop", 'GRANT CREATE ON DATABASE "shop" TO "app";'),
    ({"facts": replace(EMPTY, name='a"b', may_create=False)}, "stop", 'DATABASE "a""b" TO "app";'),
    ({"flags": {"jobs": 4}}, "ok", "one restored beside it takes its place"),
    ({"flags": {"jobs": 4}, "facts": replace(EMPTY, owns=False)}, "stop", "so it may not rename it"),
    ({"facts": FULL, "mode": "replace"}, "ok",
     'The database "shop" holds 214 tables, 3.20 GB: it is kept as shop_before_… for 7 days'),
    ({"facts": FULL, "mode": "replace", "flags": {"keep_days": 0}}, "ok", "until you drop it"),
    ({"facts": replace(FULL, owns=False, owner="boss"), "mode": "replace"}, "stop",
     'ALTER DATABASE "shop" OWNER TO "app";'),
    ({"facts": replace(FULL, prepared=2), "mode": "replace"}, "stop", "2 prepared transactions in “shop”"),
    ({"facts": replace(FULL, sessions=1), "mode": "replace"}, "ok", "1 session in “shop”: ended when"),
    ({"facts": replace(FULL, sessions=3, may_end_sessions=False), "mode": "replace"}, "warn",
     'GRANT pg_signal_backend TO "app";'),
    ({"facts": FULL, "mode": "existing", "flags": {"clean": True}}, "warn",
     "holds 214 tables, 3.20 GB, and each object that the dump holds too is dropped with its rows"),
    ({"facts": FULL, "mode": "existing", "flags": {"data_only": True}}, "warn", "rows are added to those"),
    ({"facts": FULL, "mode": "existing", "flags": {"data_only": True, "single_transaction": False}}, "warn",
     "a failure leaves it half done"),
    ({"facts": EMPTY, "mode": "existing", "flags": {"data_only": True}}, "stop", "no tables to load into"),
    ({"facts": EMPTY, "mode": "existing", "flags": {"clean": True}}, "ok", 'The database "shop" is empty'),
    ({"facts": FULL, "mode": "existing", "toc": None}, "warn", "the script decides what becomes of it"),
    ({"flags": {"role": "nobody"}}, "stop", 'The server has no role "nobody"'),
    ({"flags": {"role": "eve"}, "facts": replace(EMPTY, assumable=frozenset({"app"}))}, "stop",
     'GRANT "eve" TO "app";'),
    ({"flags": {"data_only": True, "disable_triggers": True}, "mode": "existing", "facts": FULL}, "stop",
     "disable_triggers takes a superuser"),
    # Options
    ({"flags": {"clean": True}}, "stop", "clean: the database is to be empty"),
    ({"flags": {"clean": True}, "toc": None, "mode": "existing", "facts": FULL}, "stop", "clean: the dump"),
    ({"mode": "nowhere"}, "stop", "mode must be one of"),
    # Versions and client
    ({}, "ok", "From PostgreSQL 16 into PostgreSQL 16"),
    ({"facts": replace(EMPTY, version_num=150001)}, "stop",
     "The dump is from PostgreSQL 16, the server runs PostgreSQL 15, which is older"),
    ({"facts": replace(EMPTY, version_num=150001), "flags": {"accept_errors": True}}, "warn",
     "The dump is from PostgreSQL 16, the server runs PostgreSQL 15"),
    ({"toc": replace(ARCHIVE, server_version=""), "source_major": 17}, "stop", "dump is from PostgreSQL 17"),
    ({}, "ok", "Custom archive, zstd, made by pg_dump 16.4 from PostgreSQL 16.4: pg_restore 16.5 reads it"),
    ({"toc": replace(ARCHIVE, version=(1, 16, 0))}, "ok", "As SQL, without its setting transaction_timeout"),
    ({"toc": None}, "ok", "Plain SQL from PostgreSQL 16.4: pgbr sends its statements itself"),
    ({"tools": TOOLS[:2]}, "stop", "pgtools install 16"),
    ({"flags": {"no_policies": True}}, "stop", "no_policies needs pg_restore 18"),
    # What the dump needs
    ({"facts": replace(EMPTY, roles=ROLES - {"eve", "clerk"})}, "stop",
     "The server lacks 2 roles: clerk and eve"),
    ({"facts": replace(EMPTY, roles=ROLES - {"eve"}), "has_globals": True}, "stop",
     "create them from the saved globals"),
    ({"facts": replace(EMPTY, roles=ROLES - {"eve"}), "flags": {"accept_errors": True}}, "warn",
     "The server lacks 1 role: eve"),
    ({"facts": replace(EMPTY, roles=ROLES - {"eve"}), "flags": {"missing_roles": "create"}}, "stop",
     "No globals were saved"),
    ({"facts": replace(EMPTY, roles=ROLES - {"eve"}), "flags": {"missing_roles": "create"},
      "has_globals": True}, "stop", 'ALTER ROLE "app" CREATEROLE;'),
    ({"facts": replace(EMPTY, roles=ROLES - {"eve"}, may_create_roles=True), "has_globals": True,
      "flags": {"missing_roles": "create"}}, "ok", "1 role: eve; created from the saved globals"),
    ({"facts": replace(EMPTY, roles=ROLES - {"clerk"}), "flags": {"missing_roles": "skip"}}, "stop",
     "Policies name some; they need the roles all the same"),
    ({"facts": replace(EMPTY, assumable=frozenset({"app", "ada"}))}, "stop",
     "may not give objects to 1 role: eve"),
    ({"toc": with_entries(*POSTGIS)}, "stop", "The server lacks 1 extension: postgis"),
    ({"toc": with_entries(*POSTGIS), "flags": {"accept_errors": True}}, "warn", "lacks 1 extension: postgis"),
    ({"toc": with_entries(*POSTGIS), "facts": replace(EMPTY, extensions=frozenset({"postgis"}),
      superuser_extensions=frozenset({"postgis"}))}, "warn", "superuser has to install 1 extension: postgis"),
    ({"toc": with_entries(*POSTGIS), "facts": replace(EMPTY, installed=frozenset({"postgis"}),
      foreign_extensions=frozenset({"postgis"}))}, "stop", "Tick no_extension_comments"),
    ({"toc": with_entries(entry(9, "INDEX", "i", depends_on=(2,)), entry(10, "VIEW", "v", depends_on=(3,))),
      "flags": {"tables": ["v"]}, "mode": "existing", "facts": FULL}, "warn",
     'Make sure that the database "shop" has it'),
    ({"facts": replace(EMPTY, tablespaces=frozenset({"pg_default"}))}, "stop",
     "The server lacks 1 tablespace: fast"),
    ({"facts": replace(EMPTY, encoding="LATIN1")}, "warn", 'The dump is UTF8, the database "shop" LATIN1'),
    ({"toc": many(4000)}, "stop", "A single transaction would hold about 15,0"),
    ({"toc": many(2500)}, "warn", "That may just do on a quiet server"),
    ({"flags": {"tables": ["nosuch"]}, "mode": "existing", "facts": FULL}, "stop",
     "Nothing in the dump matches nosuch"),
    # Space
    ({"free_bytes": 1_000_000, "needed_bytes": 2_500_000_000}, "stop", "needs 2.50 GB, and 1.00 MB are free"),
    ({"free_bytes": 3_000_000_000, "needed_bytes": 1000}, "ok", "the worker's disk the dump needs 1.00 kB"),
    ({"flags": {"accept_errors": True}}, "warn", "Errors are accepted"),
]  # fmt: skip
# What would be a false alarm.
QUIET: list[dict[str, Any]] = [
    {},
    {"facts": ABSENT, "mode": "new"},
    {"facts": FULL, "mode": "replace"},
    {"facts": replace(FULL, database_read_only=True), "mode": "replace"},
    {"facts": replace(EMPTY, version_num=180000), "tools": [replace(TOOLS[0], major=18, version=(18, 0))]},
    {"facts": replace(EMPTY, roles=ROLES - {"eve", "ada"}, assumable=frozenset()),
     "flags": {"no_owner": True}},
    {"facts": replace(EMPTY, roles=ROLES - {"reader"}), "flags": {"no_privileges": True}},
    {"facts": replace(EMPTY, roles=ROLES - {"eve", "ada", "reader"}), "flags": {"missing_roles": "skip"}},
    {"facts": replace(EMPTY, tablespaces=frozenset()), "flags": {"no_tablespaces": True}},
    {"facts": replace(EMPTY, installed=frozenset({"postgis"})), "toc": with_entries(*POSTGIS)},
    {"toc": many(4000), "flags": {"single_transaction": False}},
    {"toc": many(4000), "facts": ABSENT, "mode": "new"},
    {"toc": None, "tools": []},
    {"facts": replace(EMPTY, may_create=False), "flags": {"role": "ada"}},
]  # fmt: skip


@pytest.mark.parametrize(("asked", "level", "expected"), CASES)
def test_what_matters_is_found_and_said(asked: dict[str, Any], level: str, expected: str) -> None:
    seen = [words(finding) for finding in found(**asked)]
    matching = [text for text in seen if expected in text]
    assert [text.partition(":")[0] for text in matching] == [level], "\n".join(seen)


@pytest.mark.parametrize("asked", QUIET)
def test_what_is_well_stops_nobody(asked: dict[str, Any]) -> None:
    assert [words(finding) for finding in found(**asked) if finding.level != "ok"] == []


def test_only_what_comes_needs_its_roles() -> None:
    nobody = replace(FULL, roles=frozenset(), assumable=frozenset())
    assert stops(found(nobody, "existing", {"data_only": True})) == []
    without_eve = replace(FULL, roles=ROLES - {"eve"})
    assert stops(found(without_eve, "existing", {"tables": ["orders"]})) == []


def test_what_stops_comes_first_and_says_what_to_do() -> None:
    facts = replace(FULL, roles=frozenset(), tablespaces=frozenset(), in_recovery=True)
    seen = found(facts, "empty", flags={"clean": True})
    levels = [finding.level for finding in seen]
    assert levels == sorted(levels, key=("stop", "warn", "ok").index)
    assert len(stops(seen)) == levels.count("stop") >= 5
    assert all(finding.remedy or ":" in finding.title for finding in stops(seen))


def test_of_many_missing_roles_ten_are_named() -> None:
    toc = with_entries(*(entry(n, "TABLE", f"t{n}", owner=f"role{n}") for n in range(10, 30)))
    title = next(one.title for one in found(toc=toc) if "roles" in one.title)
    assert title.startswith("The server lacks 20 roles: role10, role11, ")
    assert title.endswith("role19 and 10 more")
