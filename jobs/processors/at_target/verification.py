"""Is everything there that the archive's list promises?"""

from __future__ import annotations

from psycopg import sql

from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restored import restored
from jobs.processors.at_target.sessions import Session

KINDS = frozenset({"TABLE", "FOREIGN TABLE", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "INDEX"})
THERE = sql.SQL("""
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY(%s)
""")


def missing_relations(session: Session, toc: Toc, flags: RestoreFlags, mode: str) -> list[str]:
    """Tables, views, sequences and indexes of the archive that are not in the database, of those that were
    to be restored; as "TABLE public.orders"."""
    wanted = [entry for entry in restored(toc, flags, mode).toc.entries if entry.kind in KINDS]
    schemas = sorted({entry.schema for entry in wanted})
    found = set(session.execute(THERE, [schemas]).fetchall())
    return [
        f"{entry.kind} {entry.schema}.{entry.name}"
        for entry in wanted
        if (entry.schema, entry.name) not in found
    ]
