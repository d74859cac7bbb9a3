"""What an examination says about one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """`subject` is what was looked at, `remedy` what to do about it (empty when it is well)."""

    subject: str
    level: Level
    message: str
    remedy: str = ""

    def as_dict(self) -> dict[str, str]:
        return {
            "check": self.subject,
            "status": self.level.value,
            "message": self.message,
            "remedy": self.remedy,
        }


def well(subject: str, message: str) -> Finding:
    return Finding(subject, Level.OK, message)


def doubtful(subject: str, message: str, remedy: str) -> Finding:
    return Finding(subject, Level.WARNING, message, remedy)


def broken(subject: str, message: str, remedy: str) -> Finding:
    return Finding(subject, Level.FAILED, message, remedy)
