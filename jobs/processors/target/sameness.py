"""Is the target the source? Told by the server, whatever their addresses look like."""

from __future__ import annotations

from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.server import system_identifier
from jobs.processors.base import JobFailed
from jobs.processors.source import Source
from jobs.processors.target.lock import EXISTS, Hold
from jobs.processors.target.sessions import Session


def is_same(source: Source, session: Session, target: Conninfo, name: str) -> bool:
    """Are both one database, or one a replica of the other? `session` is on the target's server."""
    identifier = system_identifier(session)
    if identifier and source.facts.system_identifier:
        row = session.execute(EXISTS, [name]).fetchone()
        return row is not None and (identifier, row[0]) == (source.facts.system_identifier, source.facts.oid)
    # Managed servers may not tell.
    return (target.host_label, name) == (source.conninfo.host_label, source.facts.dbname)


def require_another(source: Source, hold: Hold) -> None:
    """Raises `JobFailed` when source and target are the same."""
    if is_same(source, hold.session or hold.inside_or_fail(), hold.conninfo, hold.name):
        raise JobFailed(
            f'Source and target are the same database, "{source.facts.dbname}" at '
            f"{hold.conninfo.host_label}. "
            "Nothing was done. To have a copy on the same server, choose another name for it."
        )
