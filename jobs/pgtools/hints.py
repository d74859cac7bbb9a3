"""From what libpq and the client tools say to what to do about it."""

from __future__ import annotations

import re
import signal

HINTS = (
    (r"password authentication failed", "Check user and password of the connection."),
    (r"no password supplied", "The server asks for a password and the connection has none."),
    (r"no pg_hba\.conf entry", "The server's pg_hba.conf does not let this user in from this machine."),
    (r"could not translate host name|not known|failed to resolve host", "Check the host's name."),
    (r"Connection refused", "Is PostgreSQL running there, and does it listen on this port?"),
    (r"timeout expired|timed out|connection timeout", "No answer: check host, port and firewall."),
    (r"server does not support SSL", "Choose another TLS mode, or turn on ssl at the server."),
    (
        r"certificate verify failed|self-signed|signature failure",
        "The CA given did not sign its certificate.",
    ),
    (r"does not match host name", "Its certificate is for another name; sslmode=verify-ca does not compare."),
    (r"database .* does not exist", "It was dropped or renamed, or the name is misspelt."),
    (r"role .* does not exist", "Check the user of the connection."),
    (r"too many clients|connection slots|too many connections", "The server has no free connection."),
    (r"server version mismatch", "Install newer client tools: `python manage.py pgtools install MAJOR`."),
    (r"row-level security", "Use the tables' owner, or a role with BYPASSRLS."),
    (r"permission denied for", "Grant the role USAGE and SELECT, or membership of pg_read_all_data."),
    (r"server closed the connection|terminating connection", "The server ended the session; see its log."),
    (r"lock timeout|LOCK TABLE", "Another session locks a table; run again later, or wait longer for locks."),
    (r"No space left on device", "Free space on this machine, or use a format that needs no scratch space."),
    (r"no matching", "Correct the pattern; names with upper-case letters need double quotes in it."),
)
# A server may say as much as it likes, and these expressions look for each beginning's end.
LOOKED_AT = 4_000
# A failing LOCK TABLE quotes the names of all tables.
LONGEST_ERROR = 600
MOST_LINES = 6
DETAIL = re.compile(r"(?:(?:pg_\w+|psql):| )*(detail|hint|DETAIL|HINT): +")
NOISE = re.compile(
    r'connection failed: |connection to server (?:at|on socket) "[^"]*"(?: \([^)]*\))?(?:, port \d+)? '
    r"failed: |FATAL: +|Is the server running .*connections.*\?"
)


def hint(text: str) -> str:
    """What to do about a failure that `text` (an error of libpq or a tool) speaks of; "" when unknown."""
    looked_at = text[:LOOKED_AT]
    return next((advice for pattern, advice in HINTS if re.search(pattern, looked_at)), "")


def with_hint(text: str, *, longest: int = 2_000) -> str:
    advice = hint(text)
    if len(text) > longest:
        text = f"{text[:longest]}…"
    return f"{text.rstrip('.')}. {advice}" if advice else text


def login_message(text: str) -> str:
    """A failed login in one line, without what libpq repeats of the address; of several hosts all."""
    text = text.partition("All failures were:")[2] or text
    return with_hint(" ".join(NOISE.sub("", text[:LOOKED_AT]).split()))


def tool_message(tool: str, returncode: int, log: str) -> str:
    """One message from a failed tool's stderr: its last errors with their details, and what to do.

    `returncode` below zero is the signal that ended it.
    """
    errors = _error_lines(tool, log)
    if errors:
        return with_hint(" ".join(errors), longest=LONGEST_ERROR)
    if returncode < 0:
        name = signal.Signals(-returncode).name
        return f"{tool} was ended by {name} from outside, for instance because memory ran out."
    lines = [line for line in log.splitlines() if line.strip()]
    return with_hint(f"{tool} ended with status {returncode}: {lines[-1] if lines else 'it said nothing'}")


def _error_lines(tool: str, log: str) -> list[str]:
    """The last errors that stand together: 14 spreads one failure over several, later ones add details.

    psql names file and line before the word ERROR.
    """
    # Helpers of a parallel dump write name, space and message separately, so they get mixed up.
    start = re.compile(rf"(?:{re.escape(tool)}:(?:[^ ]+:\d+:)?| )*(?:error|fatal|ERROR|FATAL): +")
    found: list[str] = []
    together = False
    for line in log.splitlines():
        begins = start.match(line)
        together = bool(together and (begins or line.startswith("\t") or DETAIL.match(line)))
        if begins or together:
            text = line[begins.end() :] if begins else DETAIL.sub(r"\1: ", line)
            found = [*(found if together else []), " ".join(text.split())]
        together = together or bool(begins)
    return found[:MOST_LINES]
