"""Every option of a backup through a real pg_dump: what it does shows in the artifact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.pgtools.flags import FIELDS

from .conftest import Backups, MakeSource, Source

Samples = Callable[[int], Source]

# Flags (plain format is added), what the SQL must hold, what it must not hold, and the first major.
Case = tuple[dict[str, Any], list[str], list[str]]
CASES: list[Case] = [
    ({"schema_only": True}, ["CREATE TABLE public.kinds"], ["\nCOPY ", "lo_create"]),
    ({"data_only": True, "disable_triggers": True},
     ["COPY public.kinds", "DISABLE TRIGGER ALL"], ["CREATE TABLE"]),
    ({"schemas": ["-s", "sel*"]},
     ['"--help"', 'CREATE TABLE "select"."from"'], ["public.kinds", "lo_create"]),
    ({"schemas": ["tools"], "large_objects": True, "encoding": "LATIN1"},
     ["lo_create('4242')", "SET client_encoding = 'LATIN1'"], ["public.kinds"]),
    ({"exclude_schemas": ["public"]}, ['"--help"'], ["TABLE public.kinds", "COPY public.kinds"]),
    ({"tables": ["public.kinds", '"-s"."--help"'], "encoding": "UTF8"},
     ["public.kinds", '"--help"', "東京"], ["public.events", "CREATE SCHEMA"]),
    ({"exclude_tables": ['public."Order"*', "public.events*"], "exclude_table_data": ["public.kinds"]},
     ["CREATE TABLE public.kinds"],
     ["COPY public.kinds", "TABLE public.events", "TABLE public.\"Order"]),
    ({"section": ["pre-data"]}, ["CREATE TABLE public.kinds"], ["COPY public.kinds", "CREATE TRIGGER"]),
    ({"no_policies": True, "no_table_access_method": True},
     ["CREATE TABLE public.kinds"], ["CREATE POLICY", "default_table_access_method"]),
    ({"section": ["data", "post-data"], "no_publications": True},
     ["COPY public.kinds", "CREATE TRIGGER"], ["CREATE TABLE", "CREATE PUBLICATION"]),
    ({"clean": True, "if_exists": True, "create": True, "no_comments": True, "no_tablespaces": True},
     ["DROP DATABASE IF EXISTS", "CREATE DATABASE", "\\connect", "SET search_path TO 'select', 'public'"],
     ["COMMENT ON", "default_tablespace"]),
    ({"no_owner": True, "no_privileges": True},
     ["CREATE TABLE public.kinds"], ["OWNER TO", "GRANT", "REVOKE"]),
    ({"inserts": True, "on_conflict_do_nothing": True, "large_objects": False},
     ["INSERT INTO public.cache VALUES (1) ON CONFLICT DO NOTHING;"], ["COPY", "lo_create"]),
    ({"column_inserts": True, "rows_per_insert": 2, "enable_row_security": True},
     ['INSERT INTO "select"."from" (a, b) VALUES\n\t(1, 2),\n\t(2, 3);', "INSERT INTO public.secrets"],
     ["COPY"]),
    ({"lock_wait_timeout": 0, "role": "app", "no_subscriptions": True, "no_security_labels": True,
      "no_toast_compression": True, "no_unlogged_table_data": True, "serializable_deferrable": True},
     ["CREATE UNLOGGED TABLE public.cache"], ["COPY public.cache"]),
    ({"statistics": True}, ["pg_restore_relation_stats"], []),
    ({"extensions": ["citext"]}, ["CREATE EXTENSION IF NOT EXISTS citext"], ["pgcrypto"]),
    ({"exclude_extensions": ["pgcrypto"]}, ["EXISTS citext"], ["EXISTS pgcrypto"]),
    ({"load_via_partition_root": True}, ["COPY public.events (at"], ["COPY public.events_2025"]),
    ({"quote_all_identifiers": True}, ['CREATE TABLE "public"."kinds"'], ["TABLE public.kinds"]),
]  # fmt: skip
NEVER_PLAIN: list[dict[str, Any]] = [{"format": "directory", "jobs": 3}, {"compress": "gzip:3"}]


def cases(major: int) -> list[Case]:
    since = {field.name: field.since for field in FIELDS}
    return [case for case in CASES if all(since[name] <= major for name in case[0])]


def test_the_table_below_has_every_option() -> None:
    covered = {name for flags in [*NEVER_PLAIN, *(flags for flags, _, _ in CASES)] for name in flags}
    assert covered == {field.name for field in FIELDS}


@pytest.mark.parametrize("major", [14, 18])
def test_every_option_does_in_a_backup_what_it_says(backups: Backups, samples: Samples, major: int) -> None:
    database = backups.register(samples(major).url)
    wrong: list[str] = []
    for flags, present, absent in cases(major):
        row = backups.of(database, {"format": "plain", **flags})
        if row.status != "completed":
            wrong.append(f"{flags}: {row.error}")
            continue
        text = backups.artifact(row).decode("latin-1" if flags.get("encoding") == "LATIN1" else "utf-8")
        wrong += [f"{flags}: {part!r} is missing" for part in present if part not in text]
        wrong += [f"{flags}: {part!r} is there" for part in absent if part in text]
    assert not wrong, "\n".join(wrong)


def test_a_superuser_may_dump_as_the_role_it_names(backups: Backups, make_source: MakeSource) -> None:
    source = make_source(17, "CREATE TABLE hidden (n int); GRANT SELECT ON hidden TO app")
    row = backups.take(source.server.superuser_url(source.name), {"role": "sample reader"})
    assert row.status == "failed"
    assert "permission denied for table hidden" in (row.error or "")
    assert row.log.startswith("pg_dump: ")
