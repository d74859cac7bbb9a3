"""System checks of the configuration: what is missing, and the command that makes it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

from jobs.crypto import BadKey, Sealer

MAKE_ENCRYPTION_KEY = (
    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)


@register()
def keys(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if not _secret_key():
        found.append(
            Error(
                "SECRET_KEY is not set, and DATABASE_URL is.",
                hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"',
                id="pgbr.E001",
            )
        )
    if not settings.ENCRYPTION_KEYS:
        hint = f"Make one, the same for web and workers: {MAKE_ENCRYPTION_KEY}"
        return [*found, Error("ENCRYPTION_KEY is not set, and DATABASE_URL is.", hint=hint, id="pgbr.E002")]
    try:
        Sealer(settings.ENCRYPTION_KEYS)
    except BadKey as error:
        found.append(Error(str(error), id="pgbr.E003"))
    return found


def _secret_key() -> str:
    try:
        return settings.SECRET_KEY
    except ImproperlyConfigured:  # Django's own word for an empty one, which has no remedy in it
        return ""


@register()
def timings(**_: Any) -> list[CheckMessage]:
    if settings.STALE_SECONDS < 2 * settings.HEARTBEAT_SECONDS:
        return [
            Error(
                f"STALE_SECONDS ({settings.STALE_SECONDS:g}) must be at least twice HEARTBEAT_SECONDS "
                f"({settings.HEARTBEAT_SECONDS:g}), or healthy jobs would be taken away.",
                id="pgbr.E004",
            )
        ]
    return []


@register()
def storage(**_: Any) -> list[CheckMessage]:
    chosen = settings.ENVIRONMENT_STORAGE
    if chosen and not (chosen["access_key_id"] and chosen["secret_access_key"]):
        return [
            Error(
                "STORAGE_BUCKET is set without STORAGE_ACCESS_KEY_ID and STORAGE_SECRET_ACCESS_KEY.",
                hint="Set both (or their _FILE variants), or leave STORAGE_BUCKET out.",
                id="pgbr.E005",
            )
        ]
    return []


@register(deploy=True)
def public_url(**_: Any) -> list[CheckMessage]:
    if settings.BASE_URL.startswith("http://") and "127.0.0.1" not in settings.BASE_URL:
        return [Warning(f"BASE_URL is {settings.BASE_URL}: use https, passwords pass here.", id="pgbr.W001")]
    return []
