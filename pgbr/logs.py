"""One line an event: time, level, logger, message, then job=… queue=… attempt=… worker=… where known.

Line breaks and other control characters are escaped, and the lines of a traceback are indented, so nothing
from outside can forge a line.
"""

from __future__ import annotations

import logging
from typing import Any

FIELDS = ("job", "queue", "attempt", "worker")


class KeyValueFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = _escaped(super().formatMessage(self._prepared(record)))
        known = [(name, getattr(record, name, None)) for name in FIELDS]
        line += "".join(f" {name}={_escaped(str(value))}" for name, value in known if value is not None)
        if record.exc_info and record.exc_info[0] is not None:
            line += _indented(self.formatException(record.exc_info))
        return line

    def _prepared(self, record: logging.LogRecord) -> logging.LogRecord:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        return record


def _escaped(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _indented(traceback: str) -> str:
    """An exception's message may hold anything, line breaks too."""
    return "".join(f"\n    {_escaped(line)}" for line in traceback.split("\n"))


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "lines": {
            "()": "pgbr.logs.KeyValueFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "datefmt": "%Y-%m-%dT%H:%M:%S%z",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "pgbr": {"level": "INFO"},
        "jobs": {"level": "INFO"},
        "schedules": {"level": "INFO"},
        "dashboard": {"level": "INFO"},
    },
}
