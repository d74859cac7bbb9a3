"""Roles that an archive's owners and grants need, made from the globals saved with it."""

from __future__ import annotations

import psycopg

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restored import restored, roles_of
from jobs.pgtools.roles import statements_for
from jobs.pgtools.target import TargetFacts
from jobs.processors.at_target.sessions import Session
from jobs.processors.base import JobFailed


def create_missing(
    session: Session,
    contents: Contents,
    facts: TargetFacts,
    flags: RestoreFlags,
    mode: str,
    globals_sql: bytes,
) -> list[str]:
    """Create what the target lacks; a line for each role, for the history. Raises `JobFailed`."""
    missing = needed(contents, flags, mode, facts.assumable) - facts.roles
    told = []
    for statement in statements_for(globals_sql, missing, superuser=facts.superuser):
        try:
            session.execute(statement.sql.encode())
        except psycopg.errors.DuplicateObject:
            continue
        except psycopg.errors.OperationalError:
            raise
        except psycopg.Error as error:
            reason = str(error).strip().partition("\n")[0]
            if statement.optional:
                told.append(f'The role "{statement.role}" lacks a setting or membership: {reason}.')
                continue
            raise JobFailed(
                f'The role "{statement.role}" could not be created from the saved globals: {reason}. Create '
                "it by hand, or restore without owners and privileges."
            ) from error
        if statement.softened:
            told.append(
                f'The role "{statement.role}" had rights that it was not given here (SUPERUSER, CREATEROLE, '
                "CREATEDB, REPLICATION or BYPASSRLS): let a superuser give those that it needs."
            )
    return [*(f'The role "{role}" was created from the saved globals.' for role in sorted(missing)), *told]


def needed(contents: Contents, flags: RestoreFlags, mode: str, assumable: frozenset[str]) -> set[str]:
    """Roles that must exist for a restore with these flags."""
    if contents.toc is None:
        return set()
    owners, named = roles_of(restored(contents.toc, flags, mode, assumable).toc, flags)
    return owners | named
