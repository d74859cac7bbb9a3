"""Whom to call for which outcome."""

from __future__ import annotations

import re
from typing import Protocol
from urllib.parse import urlsplit

from schedules.models import PingKind

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# healthchecks.io and those who run it themselves: a check's UUID, or a project's key and the check's name.
CHECK = re.compile(rf"(/[^/]+)*/{UUID}", re.IGNORECASE)
NAMED_CHECK = re.compile(r"/[^/]+/[^/]+")
HOSTED = "hc-ping.com"
HELP = (
    "With the address of a check of healthchecks.io as the success URL and no other, the rest follows: "
    "/start is called at the start, /fail after a failure."
)


class Pinged(Protocol):
    """A schedule or its plan."""

    @property
    def ping_start_url(self) -> str: ...

    @property
    def ping_success_url(self) -> str: ...

    @property
    def ping_failure_url(self) -> str: ...


def addresses(of: Pinged) -> dict[str, str]:
    """Kind of ping -> the URL to call; kinds without one are left out."""
    start, success, failure = of.ping_start_url, of.ping_success_url, of.ping_failure_url
    if success and not start and not failure and is_check(success):
        start, failure = _below(success, "/start"), _below(success, "/fail")
    found = {PingKind.START.value: start, PingKind.SUCCESS.value: success, PingKind.FAILURE.value: failure}
    return {kind: url for kind, url in found.items() if url}


def is_check(url: str) -> bool:
    """Does it look like the address of a check of healthchecks.io, hosted or not?"""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    path = parts.path.rstrip("/")
    return bool(CHECK.fullmatch(path)) or (host == HOSTED and bool(NAMED_CHECK.fullmatch(path)))


def _below(url: str, ending: str) -> str:
    parts = urlsplit(url)
    return parts._replace(path=parts.path.rstrip("/") + ending).geturl()
