"""Which pg_restore reads an archive into a server."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import NoClientTools
from .toolset import Toolset

# pg_restore of this major and later begins with SET transaction_timeout, which no earlier server knows.
SETS_TRANSACTION_TIMEOUT = 17


def choose_client(
    reader_major: int, target_major: int, toolsets: Sequence[Toolset], compression: str = "none"
) -> Toolset:
    """The least major, at its newest minor, that reads the archive and is not older than the server.

    `reader_major` is `Toc.reader_major`, `compression` `Toc.compression`. Raises NoClientTools saying which
    tools are wanted. Of equals the first in `toolsets` wins.
    """
    wanted = max(reader_major, target_major)
    recent = [toolset for toolset in toolsets if toolset.major >= wanted]
    usable = [toolset for toolset in recent if compression in toolset.compressors]
    if usable:
        return min(usable, key=lambda toolset: (toolset.major, -toolset.version[1]))
    if recent:
        raise NoClientTools(
            f"The archive's data are compressed with {compression}, which the client tools found "
            f"({_labels(recent)}) were built without. {_install(wanted)}"
        )
    reason = (
        f"The server runs PostgreSQL {target_major} and pg_restore must be at least as new"
        if target_major >= reader_major
        else f"The archive was made by a newer pg_dump: pg_restore {reader_major} or later reads it"
    )
    raise NoClientTools(f"{reason}; client tools found: {_labels(toolsets)}. {_install(wanted)}")


def through_sql(toolset: Toolset, target_major: int) -> bool:
    """Whether this pg_restore would fail at such a server with its first statement, so that it has to write
    SQL for somebody who leaves that statement out (`RestoreFlags.argv` with dbname None)."""
    return target_major < SETS_TRANSACTION_TIMEOUT <= toolset.major


def _labels(toolsets: Sequence[Toolset]) -> str:
    return ", ".join(toolset.label for toolset in sorted(toolsets, key=lambda one: one.version)) or "none"


def _install(major: int) -> str:
    return (
        f"Run `python manage.py pgtools install {major}`, or install postgresql-client-{major}, or name a "
        "folder with its tools in PGBR_PG_BIN."
    )
