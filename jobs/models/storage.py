"""Where artifacts lie: storages, the copies in them, and files that users uploaded."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import URLValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models.base import Owned, UuidModel, one_of
from jobs.models.history import BackupJob


class StorageKind(models.TextChoices):
    FOLDER = "folder"
    S3 = "s3", "S3-compatible"


class Origin(models.TextChoices):
    """Who made the row: `built_in` and `environment` rows follow the settings and are read-only."""

    BUILT_IN = "built_in", "built in"
    ENVIRONMENT = "environment", "from the environment"
    SAVED = "saved", "saved here"


class Storage(UuidModel):
    # NULL: of the instance, for everyone to use and nobody to change.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=StorageKind.choices, default=StorageKind.S3)
    origin = models.CharField(max_length=20, choices=Origin.choices, default=Origin.SAVED, editable=False)
    folder = models.TextField(default="", blank=True)
    endpoint = models.CharField(
        max_length=500,
        default="",
        blank=True,
        validators=[URLValidator(["http", "https"])],
        help_text="Empty: AWS.",
    )
    region = models.CharField(max_length=100, default="us-east-1", blank=True)
    bucket = models.CharField(max_length=255, default="", blank=True)
    prefix = models.CharField(max_length=500, default="", blank=True)
    access_key_id = models.CharField(max_length=255, default="", blank=True)
    sealed_secret = models.TextField(default="", blank=True)
    force_path_style = models.BooleanField(default=True)
    # The last test: {"put": null or the error, "get": …, "list": …, "delete": …}
    test_result = models.JSONField(null=True, blank=True, editable=False)
    tested_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The last comparison of objects with rows (`jobs.sweeping`), as JSON.
    swept = models.JSONField(null=True, blank=True, editable=False)
    swept_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "storages"
        ordering = ["name"]
        constraints = [
            one_of("kind", StorageKind, "storages_kind"),
            one_of("origin", Origin, "storages_origin"),
            models.UniqueConstraint(
                fields=["user", "name"], name="storages_name_per_user", nulls_distinct=False
            ),
            models.UniqueConstraint(
                fields=["origin"],
                condition=Q(origin__in=["built_in", "environment"]),
                name="storages_one_of_each_origin",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CopyState(models.TextChoices):
    WRITING = "writing"
    GOOD = "good"
    FAILED = "failed"
    DELETING = "deleting"


class BackupCopy(UuidModel):
    """One artifact in one storage. A `writing` row is made before the first byte goes, with what it takes
    to clear away exactly this unfinished object (`storage_key`, `upload_token`) should its worker die."""

    backup = models.ForeignKey(BackupJob, on_delete=models.CASCADE, related_name="copies")
    storage = models.ForeignKey(Storage, on_delete=models.PROTECT)
    state = models.CharField(max_length=20, choices=CopyState.choices, default=CopyState.WRITING)
    is_first = models.BooleanField(default=True)
    claim_id = models.UUIDField(null=True)
    storage_key = models.TextField()
    upload_token = models.TextField(default="")
    size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, null=True)
    has_globals = models.BooleanField(default=False)
    error = models.TextField(null=True)
    attempts = models.IntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    locked_until = models.DateTimeField(null=True, help_text="Nobody can delete the object before.")
    delete_after = models.DateTimeField(
        null=True, help_text="A tightened policy gives it up; until then that can be taken back."
    )
    verified_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    completed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "backup_copies"
        verbose_name_plural = "backup copies"
        constraints = [
            one_of("state", CopyState, "backup_copies_state"),
            models.UniqueConstraint(fields=["storage", "storage_key"], name="backup_copies_key"),
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(state__in=["writing", "failed", "deleting"]),
                name="backup_copies_unfinished",
            ),
            models.Index(
                fields=["delete_after"],
                condition=Q(delete_after__isnull=False),
                name="backup_copies_delete_after",
            ),
        ]

    def __str__(self) -> str:
        return self.storage_key


class Upload(Owned):
    """A file that a user brought to restore from."""

    name = models.TextField()
    storage = models.ForeignKey(Storage, on_delete=models.PROTECT)
    storage_key = models.TextField()
    upload_token = models.TextField(default="")
    state = models.CharField(max_length=20, choices=CopyState.choices, default=CopyState.WRITING)
    size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, null=True)
    facts = models.JSONField(null=True, help_text="What it holds: format, codec, versions, in words.")
    keep_until = models.DateTimeField(null=True, help_text="Empty: until it is deleted.")
    completed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "uploads"
        constraints = [one_of("state", CopyState, "uploads_state")]

    def __str__(self) -> str:
        return self.name
