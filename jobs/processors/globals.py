"""Roles, their settings and memberships, tablespaces: what a database needs and its dump does not hold."""

from __future__ import annotations

from pathlib import Path

from psycopg.conninfo import make_conninfo

from jobs.pgtools.errors import ToolFailed
from jobs.pgtools.globals import globals_argv
from jobs.pgtools.process import Child, spawn
from jobs.processors.control import Control
from jobs.processors.source import Source

MOST_BYTES = 32 * 2**20


def dump_globals(
    source: Source, folder: Path, environment: dict[str, str], control: Control
) -> tuple[bytes, str | None]:
    """`pg_dumpall --globals-only`, and a warning where it lacks something; empty bytes if it is denied
    altogether (managed servers do that), which is no reason to fail the backup."""
    passwords = source.facts.reads_role_passwords
    try:
        sql = _run(source, folder, environment, control, passwords=passwords)
    except ToolFailed as error:
        control.check_tool(error)
        return b"", f"The server's globals (roles) could not be saved: {error.message}"
    if passwords:
        return sql, None
    return sql, "The server's roles are saved without their passwords: the login may not read them."


def _run(
    source: Source, folder: Path, environment: dict[str, str], control: Control, *, passwords: bool
) -> bytes:
    # libpq takes a name like "host=… user=…" for a whole address: a database could be called that.
    dbname = make_conninfo("", dbname=source.conninfo.dbname)
    argv = globals_argv(source.toolset, dbname, role_passwords=passwords)
    child = spawn(argv, environment, cwd=folder, secrets=source.conninfo.secrets)
    with child, control.killing(child.kill):
        sql = _read(child)
        child.check()
    return sql


def _read(child: Child) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := child.stdout.read(65536):
        size += len(part)
        if size > MOST_BYTES:
            raise ToolFailed("pg_dumpall", -1, "", f"the globals are larger than {MOST_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)
