"""Which installation of pgbr this is, so that several can share a bucket."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now


class Instance(models.Model):
    """The only row of its table; `key` is in every manifest that this installation writes."""

    only = models.BooleanField(primary_key=True, default=True)
    key = models.UUIDField(default=uuid.uuid4)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "instance"
        constraints = [models.CheckConstraint(condition=models.Q(only=True), name="instance_only_one")]

    def __str__(self) -> str:
        return str(self.key)


def instance_key() -> uuid.UUID:
    """Made when it is first asked for."""
    return Instance.objects.get_or_create(only=True)[0].key
