"""What several tables share."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Queue(models.TextChoices):
    BACKUP = "backup"
    RESTORE = "restore"
    MIGRATION = "migration"


class UuidModel(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)

    class Meta:
        abstract = True


class Owned(UuidModel):
    """Belongs to a user, who cannot be deleted while something does: nothing vanishes with an account."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True


def one_of(field: str, choices: type[models.TextChoices], name: str) -> models.CheckConstraint:
    """A CHECK that holds in the database, whoever writes to it."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": choices.values}), name=name)
