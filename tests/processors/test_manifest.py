"""What lies beside an artifact says what is true."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from jobs.models import BackupJob, Database
from jobs.models.instance import instance_key
from tests import sample, servers

from .conftest import Backups, MakeSource, Source
from .restoring import toolset

Samples = Callable[[int], Source]


def manifest_of(backups: Backups, row: BackupJob) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(backups.read(row, f"{row.storage_key}.json"))
    assert stored == row.manifest
    return stored


def globals_of(backups: Backups, row: BackupJob) -> str:
    stored = backups.read(row, f"{row.storage_key}.globals.sql")
    assert row.manifest is not None
    assert hashlib.sha256(stored).hexdigest() == row.manifest["globals_sha256"]
    return stored.decode()


def test_the_manifest_describes_the_database_and_the_artifact(backups: Backups, samples: Samples) -> None:
    source = samples(18)
    flags = {"exclude_schemas": ["tools"], "compress": "gzip:2", "lock_wait_timeout": 7}
    row = backups.take(source.url, flags, name="Café/№ 1")
    found = manifest_of(backups, row)
    database = found.pop("database")
    with psycopg.connect(source.url) as session:
        extensions: dict[str, str] = dict(
            session.execute("SELECT extname, extversion FROM pg_extension").fetchall()
        )
        collate, ctype, size = session.execute(
            """SELECT datcollate, datctype, pg_database_size(oid) FROM pg_database
            WHERE datname = current_database()"""
        ).fetchone() or ("", "", 0)
    assert abs(database.pop("bytes") - size) < 2**20
    assert len(weights := database.pop("table_bytes")) == 11
    assert (weights["public.empty"], weights["-s.--help"] > 0) == (0, True)
    assert database == {
        "dbname": source.name, "encoding": "UTF8", "collate": collate, "ctype": ctype,
        "locale_provider": "libc", "locale": "", "owner": servers.APP, "extensions": extensions,
        "settings": {**sample.SETTINGS, "search_path": sample.SEARCH_PATH}, "tables": 11,
    }  # fmt: skip
    started, ended = (datetime.fromisoformat(found.pop(key)) for key in ("started_at", "ended_at"))
    assert row.started_at == started <= ended <= (row.completed_at or ended)
    tools = toolset(18).label
    artifact = backups.artifact(row)
    assert found.pop("globals_sha256")
    assert found == {
        "format_version": 1, "job_id": str(row.id), "name": "Café/№ 1",
        "flags": flags, "compression": "gzip:2", "server_version": tools, "client_version": tools,
        "instance": str(instance_key()), "schedule_id": None,
        "artifact": {
            "key": row.storage_key, "size": len(artifact), "sha256": hashlib.sha256(artifact).hexdigest(),
        },
    }  # fmt: skip
    assert (row.storage_key or "").startswith("Cafe-No-1/")
    facts = Database.objects.get().facts or {}
    assert (facts["version"], facts["extensions"]) == (tools, extensions)


def test_globals_hold_the_roles_without_passwords_for_a_plain_login(
    backups: Backups, samples: Samples
) -> None:
    row = backups.take(samples(17).url, {})
    text = globals_of(backups, row)
    assert 'CREATE ROLE "sample reader"' in text
    assert "SCRAM" not in text
    assert row.warnings == [
        "The server's roles are saved without their passwords: the login may not read them."
    ]


def test_globals_hold_the_roles_with_passwords_for_a_superuser(backups: Backups, samples: Samples) -> None:
    source = samples(14)
    row = backups.take(source.server.superuser_url(source.name), {"schema_only": True})
    assert "CREATE ROLE app" in globals_of(backups, row)
    assert "PASSWORD 'SCRAM-SHA-256$" in globals_of(backups, row)
    assert row.warnings == []


def test_denied_globals_are_a_warning_and_the_backup_is_good(
    backups: Backups, make_source: MakeSource
) -> None:
    source = make_source(17, "CREATE TABLE t AS SELECT 1 AS n")
    for command in (
        "REVOKE SELECT ON pg_auth_members FROM PUBLIC",
        "GRANT SELECT ON pg_auth_members TO PUBLIC",
    ):
        if command.startswith("GRANT"):
            row = backups.take(source.url, {})
        source.server.execute(sql.SQL(command), source.name)
    backups.assert_whole(row)
    assert row.manifest is not None
    assert row.manifest["globals_sha256"] is None
    assert "globals (roles) could not be saved" in row.warnings[0]
    assert "permission denied for" in row.warnings[0]


def test_a_database_called_like_an_address_is_not_taken_for_one(
    backups: Backups, make_source: MakeSource
) -> None:
    """libpq expands such a name, and would log in elsewhere, through a socket with the worker's identity."""
    other = servers.get(16)
    name = f"host={other.host} user=postgres dbname=postgres port={other.port}"
    source = make_source(17, "CREATE TABLE t AS SELECT 1 AS n", name)
    row = backups.take(source.url, {})
    backups.assert_whole(row)
    assert "CREATE ROLE app" in globals_of(backups, row)
