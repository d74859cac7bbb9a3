"""Lines that a machine reads, and that nothing from outside can forge."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import pytest

from pgbr.logs import LOGGING, KeyValueFormatter

FORGED = "2026-01-01T00:00:00+0000 INFO jobs.worker.runner completed job=1"
EVIL = f"x\n{FORGED}\r\n\x1b[2Jy\x00\x85\u2028{FORGED}\u2029\x0b\x0c"


def line(message: str, *arguments: Any, exc_info: Any = None, **fields: Any) -> str:
    record = logging.LogRecord("jobs.test", logging.WARNING, "f.py", 1, message, arguments, exc_info)
    vars(record).update(fields)
    options = LOGGING["formatters"]["lines"]
    return KeyValueFormatter(options["format"], options["datefmt"]).format(record)


def test_a_line_says_when_how_bad_where_and_about_which_job() -> None:
    job = UUID("12345678-1234-5678-1234-567812345678")
    text = line("failed: %s", "why", job=job, queue="backup", attempt=2, worker="host:1:ab")
    time, _, rest = text.partition(" ")
    assert rest == f"WARNING jobs.test failed: why job={job} queue=backup attempt=2 worker=host:1:ab"
    assert len(time) == len("2026-01-01T00:00:00+0000")


@pytest.mark.parametrize("where", ["message", "argument", "worker"])
def test_control_characters_are_escaped_wherever_they_come_from(where: str) -> None:
    if where == "message":
        text = line(EVIL.replace("%", "%%"))
    elif where == "argument":
        text = line("said %s", EVIL)
    else:
        text = line("said", worker=EVIL)
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    assert "x\\n2026" in text


def test_a_lone_surrogate_can_be_written() -> None:
    line("name %s", "\udc80").encode()


def test_an_exceptions_text_cannot_forge_a_line_either() -> None:
    error = ValueError(EVIL)
    error.__cause__ = OSError(EVIL)
    first, *rest = line("failed", exc_info=(ValueError, error, None), job=1).split("\n")
    assert first.endswith("failed job=1")
    assert "".join(rest).isprintable()
    assert all(part.startswith("    ") for part in rest)
    assert any("ValueError: x" in part for part in rest)
