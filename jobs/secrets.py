"""Keys from the settings -> seal and unseal."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from jobs.crypto import Sealer


@lru_cache(maxsize=4)
def _sealer(keys: tuple[str, ...]) -> Sealer:
    return Sealer(keys)


def sealer() -> Sealer:
    return _sealer(tuple(settings.ENCRYPTION_KEYS))


def seal(secret: str) -> str:
    return sealer().seal(secret)


def unseal(token: str, what: str) -> str:
    return sealer().unseal(token, what)
