"""URLs given to commands. Arguments can be read by every user of the machine, so there is another way."""

from __future__ import annotations

import sys

from jobs.management.cli import PgbrCommand


def read_url(command: PgbrCommand, given: str, option: str) -> str:
    """`given`, or the next line of standard input for "-". A password among the arguments is remarked on."""
    if given == "-":
        return sys.stdin.readline().strip()
    if "@" in given and ":" in given.partition("://")[2].rpartition("@")[0]:
        command.remark(f"The password in {option} can be read by every user of this machine: use {option} -")
    return given
