"""What can go wrong with PostgreSQL's tools and servers, in words a user can act on.

No message holds a password: classes that take text from a tool expect it already masked.
"""

from __future__ import annotations

from collections.abc import Sequence


class PgToolsError(Exception):
    """Base of everything this package raises on purpose; `str(error)` is fit for a user's eyes."""


class NoClientTools(PgToolsError):
    """No usable pg_dump, pg_restore and psql for this server; says what to install."""


class InvalidFlags(PgToolsError):
    """Options that are unknown, malformed or contradict each other; `problems` names each one."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


class InvalidConninfo(PgToolsError):
    """A connection URL that cannot be used. Never quotes the URL."""


class ConnectionFailed(PgToolsError):
    """The server could not be reached or refused the login."""


class QueryFailed(PgToolsError):
    """The server answered a question about the database with an error, or the session broke."""


class PoolerDetected(PgToolsError):
    """The connection goes through a pooler that gives each transaction another session."""


class UnmatchedPattern(PgToolsError):
    """A schema or table pattern that matches nothing in the database."""


class ToolFailed(PgToolsError):
    """A client tool ended with an error.

    `tool` is its name, `returncode` its exit status (negative: the signal that ended it), `log` the
    kept part of its stderr, `message` the line that matters with a hint.
    """

    def __init__(self, tool: str, returncode: int, log: str, message: str) -> None:
        self.tool = tool
        self.returncode = returncode
        self.log = log
        self.message = message
        super().__init__(message)

    @property
    def ended_from_outside(self) -> bool:
        """By a signal; pg_dump and pg_restore turn SIGTERM into an exit status."""
        return self.returncode < -1 or "terminated by user" in self.log


class DumpTimedOut(PgToolsError):
    """The dump ran longer than the database's longest duration."""


class UnknownContent(PgToolsError):
    """A file that is no dump; the message says what it looks like."""


class DamagedArchive(PgToolsError):
    """A dump that breaks off, contradicts itself or tries to get out of its folder."""


class NewerArchive(PgToolsError):
    """An archive of a pg_dump that is newer than anything here can read."""
