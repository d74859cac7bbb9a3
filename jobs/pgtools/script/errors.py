"""How the loading of a script ends when it does not end well."""

from __future__ import annotations

from ..errors import PgToolsError


class ScriptError(PgToolsError):
    """A script that holds what pgbr does not run, or that breaks off; `line` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        super().__init__(f"Line {line}: {reason}")


class ScriptFailed(PgToolsError):
    """The server refused a statement, or was lost.

    `line` is that of the script (0: not of the script but of pgbr's own), `head` the statement's beginning
    without its literals, `reason` what the server says.
    """

    def __init__(self, line: int, head: str, reason: str) -> None:
        self.line = line
        self.head = head
        self.reason = reason
        super().__init__(described(line, head, reason))


class Interrupted(Exception):
    """`stop` said so: the session was cancelled and what was open is rolled back."""


def described(line: int, head: str, reason: str) -> str:
    """An error in one line: where, at what, why."""
    return f"{f'line {line}: ' if line else ''}{head}: {reason}"
