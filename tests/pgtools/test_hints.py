from __future__ import annotations

import pytest

from jobs.pgtools.hints import login_message, tool_message
from jobs.pgtools.log import BoundedLog
from jobs.pgtools.mask import mask

ONE_FAILURE_IN_TWO_LINES = """pg_dump: reading schemas
pg_dump: error: query failed: ERROR:  permission denied for table t
pg_dump: error: query was: LOCK TABLE public.t IN ACCESS SHARE MODE"""
DETAILS = """pg_dump: dumping contents of table "public.t"
pg_dump: error: Dumping the contents of table "t" failed: PQgetResult() failed.
pg_dump: detail: Error message from server: FATAL:  terminating connection due to administrator command
pg_dump: detail: Command was: COPY public.t (id) TO stdout;"""
LAST_OF_TWO = "pg_dump: error: first\npg_dump: reading on\npg_dump: error: second\n\tmore of it\nthe end"
MIXED_UP = "pg_dump:pg_dump: reading indexes\n error: a worker process died unexpectedly"


@pytest.mark.parametrize(
    ("tool", "returncode", "log", "message"),
    [
        (
            "pg_dump",
            1,
            ONE_FAILURE_IN_TWO_LINES,
            "query failed: ERROR: permission denied for table t query was: LOCK TABLE public.t "
            "IN ACCESS SHARE MODE. Grant the role USAGE and SELECT, or membership of pg_read_all_data.",
        ),
        (
            "pg_dump",
            1,
            DETAILS,
            'Dumping the contents of table "t" failed: PQgetResult() failed. detail: Error message '
            "from server: FATAL: terminating connection due to administrator command detail: "
            "Command was: COPY public.t (id) TO stdout;. The server ended the session; see its log.",
        ),
        ("pg_dump", 1, LAST_OF_TWO, "second more of it"),
        ("pg_dump", 1, MIXED_UP, "a worker process died unexpectedly"),
        ("psql", 3, "psql:/s/dump.sql:7: ERROR:  syntax error", "syntax error"),
        ("pg_restore", 1, "pg_restore: fatal: cannot write: No space left on device",
         "cannot write: No space left on device. Free space on this machine, or use a format that "
         "needs no scratch space."),
        ("pg_dump", -9, "pg_dump: reading", "pg_dump was ended by SIGKILL from outside, for instance because "
         "memory ran out."),
        ("pg_dump", 127, "setpriv: failed\n\n", "pg_dump ended with status 127: setpriv: failed"),
        ("pg_dump", 1, "", "pg_dump ended with status 1: it said nothing"),
    ],
)  # fmt: skip
def test_a_failed_tool_gives_one_message_with_what_to_do(
    tool: str, returncode: int, log: str, message: str
) -> None:
    assert tool_message(tool, returncode, log) == message


def test_a_message_does_not_quote_thousands_of_table_names() -> None:
    names = ", ".join(f"public.t{n}" for n in range(3000))
    message = tool_message("pg_dump", 1, f"pg_dump: error: timeout: LOCK TABLE {names}")
    assert len(message) < 800
    assert message.endswith("wait longer for locks.")


def test_a_failed_login_is_one_line_without_the_address_again() -> None:
    text = (
        'connection failed: connection to server at "127.0.0.1", port 5432 failed: Connection refused\n'
        "\tIs the server running on that host and accepting TCP/IP connections?"
    )
    assert login_message(text) == (
        "Connection refused. Is PostgreSQL running there, and does it listen on this port?"
    )


@pytest.mark.parametrize(
    ("text", "secrets", "expected"),
    [
        ("a s3cret b", ["s3cret"], "a •••• b"),
        ("p%40ss p@ss", ["p@ss"], "•••• ••••"),
        ("longer", ["long", "longer"], "••••"),
        ("ab stays", ["ab"], "ab stays"),
        ("nothing", [""], "nothing"),
    ],
)
def test_secrets_are_masked_however_they_are_spelt(text: str, secrets: list[str], expected: str) -> None:
    assert mask(text, secrets) == expected


def test_a_log_keeps_its_beginning_and_its_end() -> None:
    log = BoundedLog(["s3cret"])
    for number in range(1000):
        log.add(f"line {number}")
    assert log.add("s3cret" + "x" * 5000) == "••••" + "x" * 1996 + " …"
    lines = log.text().splitlines()
    assert (lines[0], lines[199]) == ("line 0", "line 199")
    assert lines[200] == "… 501 lines left out …"
    assert lines[201:-1] == [f"line {number}" for number in range(701, 1000)]
    assert len(lines) == 501
