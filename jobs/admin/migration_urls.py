"""URLs that were typed into a page of several steps: kept sealed in the session, never sent back."""

from __future__ import annotations

import secrets

from django.http import HttpRequest

from jobs.crypto import CannotDecrypt
from jobs.secrets import seal, unseal

KEY = "typed_urls"
MOST = 6  # of the latest pages


def keep(request: HttpRequest, url: str) -> str:
    """A name under which this session, and no other, finds the URL again."""
    name = secrets.token_urlsafe(12)
    earlier = list(_all(request).items())[1 - MOST :]
    request.session[KEY] = dict(earlier) | {name: seal(url)}
    return name


def kept(request: HttpRequest, name: str) -> str:
    """ "" where there is none."""
    try:
        return unseal(_all(request).get(name, ""), "A URL typed before")
    except CannotDecrypt:
        return ""


def forget(request: HttpRequest) -> None:
    request.session.pop(KEY, None)


def _all(request: HttpRequest) -> dict[str, str]:
    found = request.session.get(KEY)
    return found if isinstance(found, dict) else {}
