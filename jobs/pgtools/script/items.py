"""What a script consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon; `line` is where it begins, counted from 1.

    With `takes_data` the rows of a COPY follow: any number of CopyData and one CopyEnd.
    """

    line: int
    text: bytes
    takes_data: bool = False


@dataclass(frozen=True)
class CopyData:
    """A piece of a COPY's data, cut anywhere; `line` is where it begins."""

    line: int
    data: bytes


@dataclass(frozen=True)
class CopyEnd:
    """The data of the COPY before is complete."""


@dataclass(frozen=True)
class Connect:
    r"""\connect to the database `name`, with the same user and server."""

    line: int
    name: str


Item = Statement | CopyData | CopyEnd | Connect
