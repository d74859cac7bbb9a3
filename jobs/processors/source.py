"""What a backup has to know of the database before it starts: who it is, which tools fit, what is in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from django.conf import settings

from jobs.pgtools import binaries, pooler, server
from jobs.pgtools.asking import trust_no_names
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import QueryFailed
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.hints import login_message
from jobs.pgtools.limit import Limit, hang_up
from jobs.pgtools.mask import mask
from jobs.pgtools.server import ServerFacts
from jobs.pgtools.sessions import end_sessions
from jobs.pgtools.tables import require_matches, tables
from jobs.pgtools.toolset import Toolset
from jobs.processors.control import Control

LONGEST_SECONDS = 900.0  # for all that is asked before a dump


@dataclass(frozen=True)
class Source:
    """`weights`: bytes of each table whose rows will be dumped, empty also if not `counted`. `warnings`: for
    the history."""

    conninfo: Conninfo
    facts: ServerFacts
    toolset: Toolset
    weights: dict[str, int]
    warnings: list[str]
    counted: bool = True

    @property
    def bytes(self) -> int:
        """Of the rows to be dumped, as they lie in the server; the whole database where that is not known."""
        return sum(self.weights.values()) if self.counted else self.facts.size_bytes or 0


def toolsets() -> list[Toolset]:
    """All client tools of this machine."""
    return binaries.discover([Path(folder) for folder in settings.PGBR_PG_BIN], settings.PGTOOLS_FOLDER)


@contextmanager
def session(
    conninfo: Conninfo,
    folder: Path,
    application_name: str,
    *,
    seconds: float = LONGEST_SECONDS,
    patience: int | None = None,
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A logged-in session that no pooler shares with others; `folder` is for the files that libpq reads.
    It is cut off after `seconds`, and the login after about `patience` (None: as the URL says).

    Raises `ConnectionFailed`, `PoolerDetected`, and `QueryFailed` when it breaks while in use.
    """

    patient = conninfo if patience is None else conninfo.impatient(patience)

    def connect() -> psycopg.Connection[tuple[object, ...]]:
        opened = patient.connect(folder, application_name)
        limit.watch(opened)
        return opened

    with Limit(seconds) as limit:
        try:
            with connect() as connection:
                pooler.refuse_pooler(connection, connect)
                trust_no_names(connection)
                yield connection
        except (psycopg.Error, QueryFailed) as error:
            if not limit.over and isinstance(error, QueryFailed):
                raise
            reason = login_message(mask(str(error), conninfo.secrets))
        else:
            return
    if limit.over:
        reason = limit.reason
    raise QueryFailed(f'Asking {conninfo.host_label} about database "{conninfo.dbname}" failed: {reason}')


def examine(
    conninfo: Conninfo,
    flags: DumpFlags,
    folder: Path,
    application_name: str,
    control: Control,
    *,
    spare: Collection[int] = (),
) -> Source:
    """Log in and look. Ends what an earlier run of this job left running there, which is all that has its
    name but the sessions with the pids of `spare`.

    Raises `PgToolsError`: no login, a pooler, no client new enough, a pattern that matches nothing; `Stopped`
    at once when the job is told to stop, also while the server does not answer.
    """
    return control.interruptibly(lambda: _examine(conninfo, flags, folder, application_name, control, spare))


def _examine(
    conninfo: Conninfo,
    flags: DumpFlags,
    folder: Path,
    application_name: str,
    control: Control,
    spare: Collection[int],
) -> Source:
    with (
        session(conninfo, folder, application_name) as connection,
        control.killing(partial(hang_up, connection)),
    ):
        end_sessions(connection, application_name, spare)
        facts = server.inspect(connection)
        toolset = binaries.choose(facts.major, toolsets())
        warnings = require_matches(connection, flags)
        try:
            return Source(conninfo, facts, toolset, tables(connection, flags), warnings)
        except QueryFailed as error:
            # The dump is as good without: names that are not UTF-8 can be dumped and not be asked for.
            warnings.append(f"How far the backup was could not be told. {error}")
            return Source(conninfo, facts, toolset, {}, warnings, counted=False)
