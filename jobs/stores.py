"""A storage row -> a store, and the rows that follow the settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q, QuerySet

from jobs.crypto import CannotDecrypt
from jobs.models import Storage
from jobs.models.storage import Origin, StorageKind
from jobs.secrets import seal, unseal
from jobs.storage.base import Store
from jobs.storage.local import LocalStore
from jobs.storage.s3 import S3Store


def store_for(row: Storage, *, retry_seconds: float | None = None) -> Store:
    """The store behind a row; one that is away is tried again for STORAGE_RETRY_SECONDS at most, or for
    `retry_seconds` where somebody waits. Raises `jobs.crypto.CannotDecrypt` when no key opens its secret."""
    if row.kind == StorageKind.FOLDER:
        folder = row.folder or settings.BACKUP_FOLDER
        return LocalStore(folder, name=f"Storage {row.name!r} ({folder})")
    return S3Store(
        endpoint=row.endpoint,
        region=row.region,
        bucket=row.bucket,
        access_key=row.access_key_id,
        secret=unseal(row.sealed_secret, f"The secret of storage {row.name!r}"),
        force_path_style=row.force_path_style,
        retry_seconds=settings.STORAGE_RETRY_SECONDS if retry_seconds is None else retry_seconds,
        name=repr(row.name),
    )


def default_storage() -> Storage:
    """The environment's storage if it names one, else the folder under PGBR_HOME."""
    return _environment() or _built_in()


def usable_by(user: AbstractBaseUser) -> QuerySet[Storage]:
    """The instance's storages and the user's own."""
    return Storage.objects.filter(Q(user__isnull=True) | Q(user_id=user.pk))


def follow_settings() -> None:
    """Make the read-only rows say what the settings say. Run after migrate and when a worker starts."""
    _built_in()
    _environment()


def _built_in() -> Storage:
    values = {"name": "local folder", "kind": StorageKind.FOLDER, "folder": str(settings.BACKUP_FOLDER)}
    return _following(Origin.BUILT_IN, values, same_place=("folder",))


def _environment() -> Storage | None:
    chosen = settings.ENVIRONMENT_STORAGE
    if chosen is None:
        _retire(Storage.objects.filter(origin=Origin.ENVIRONMENT).first())
        return None
    values = {name: chosen[name] for name in ("endpoint", "region", "bucket", "prefix", "access_key_id")}
    values |= {"force_path_style": chosen["force_path_style"], "kind": StorageKind.S3}
    values |= {"name": f"environment: {chosen['bucket']}", "secret": chosen["secret_access_key"]}
    return _following(Origin.ENVIRONMENT, values, same_place=("endpoint", "bucket"))


@transaction.atomic
def _following(origin: Origin, values: dict[str, Any], same_place: tuple[str, ...]) -> Storage:
    """The row of this origin, brought up to date. If it points elsewhere by now, the old row becomes an
    ordinary one first: the copies in it stay within reach."""
    secret = values.pop("secret", "")
    row = Storage.objects.select_for_update().filter(origin=origin).first()
    if row is not None and any(getattr(row, name) != values[name] for name in same_place):
        _retire(row)
        row = None
    if row is None:
        sealed = {"sealed_secret": seal(secret)}
        return Storage.objects.get_or_create(origin=origin, defaults=values | sealed)[0]
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    if secret and not _is_sealed_in(row, secret):
        changed["sealed_secret"] = seal(secret)
    if changed:
        Storage.objects.filter(id=row.id).update(**changed)
        row.refresh_from_db()
    return row


def _is_sealed_in(row: Storage, secret: str) -> bool:
    """Not when no key opens what is there (any more): then the settings' secret takes its place."""
    try:
        return unseal(row.sealed_secret, "") == secret
    except CannotDecrypt:
        return False


def _retire(row: Storage | None) -> None:
    if row is not None:
        row.origin, row.name = Origin.SAVED, f"{row.name} (before {row.id.hex[:4]})"[:100]
        row.save(update_fields=["origin", "name"])
