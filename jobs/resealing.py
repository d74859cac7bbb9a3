"""Changing the key that encrypts: every sealed column of every row, sealed again with the first key."""

from __future__ import annotations

from django.db import models, transaction

from jobs.models import Database, MigrationJob, Storage
from jobs.secrets import sealer

SEALED: tuple[tuple[type[models.Model], tuple[str, ...]], ...] = (
    (Database, ("sealed_url", "sealed_client_key")),
    (Storage, ("sealed_secret",)),
    (MigrationJob, ("source_sealed_url", "target_sealed_url")),
)


@transaction.atomic
def reseal_all() -> int:
    """All or nothing; the number of rows. Raises `CannotDecrypt` naming the first value that no key opens."""
    return sum(_reseal(model, columns) for model, columns in SEALED)


def _reseal(model: type[models.Model], columns: tuple[str, ...]) -> int:
    rows = model._default_manager.select_for_update().order_by("pk")
    count = 0
    for row in rows.iterator(chunk_size=500):
        for column in columns:
            what = f"The {column} of {model._meta.verbose_name} {row} ({row.pk})"
            setattr(row, column, sealer().rotate(getattr(row, column), what))
        row.save(update_fields=columns)
        count += 1
    return count
