"""The roles and tablespaces of a whole server, which no dump of one database holds."""

from __future__ import annotations

from .toolset import Toolset


def globals_argv(toolset: Toolset, dbname: str, *, role_passwords: bool) -> list[str]:
    """pg_dumpall writing SQL to stdout; `dbname` is one that the login may connect to.

    Password hashes can be read by superusers only (`ServerFacts.reads_role_passwords`); for others the roles
    are written without. Where to connect is in the environment, as for pg_dump.
    """
    argv = [str(toolset.tool("pg_dumpall")), "--globals-only", "--no-password", f"--database={dbname}"]
    return argv if role_passwords else [*argv, "--no-role-passwords"]
