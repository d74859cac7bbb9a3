"""A registered connection to a PostgreSQL database."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models

from jobs.models.base import Owned


class SslMode(models.TextChoices):
    """libpq's sslmode; empty means what the URL says, else libpq's own default."""

    DEFAULT = "", "as in the URL"
    DISABLE = "disable", "disable: never TLS"
    PREFER = "prefer", "prefer: TLS if the server offers it"
    REQUIRE = "require", "require: TLS, certificate not checked"
    VERIFY_CA = "verify-ca", "verify-ca: TLS, certificate signed by the CA"
    VERIFY_FULL = "verify-full", "verify-full: TLS, certificate signed by the CA for this host"


class Database(Owned):
    name = models.CharField(max_length=100)
    sealed_url = models.TextField()
    sslmode = models.CharField(max_length=20, choices=SslMode.choices, default="", blank=True)
    ca_certificate = models.TextField(default="", blank=True, help_text="PEM of the CA to trust.")
    client_certificate = models.TextField(default="", blank=True, help_text="PEM.")
    sealed_client_key = models.TextField(default="", blank=True)

    protected = models.BooleanField(
        default=False, help_text="Refuses every restore and migration into this database."
    )
    storage = models.ForeignKey(
        "jobs.Storage",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        help_text="Where its backups go; empty: the instance's default storage.",
    )
    max_duration = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Seconds after which a backup is stopped and failed; empty: no limit.",
    )
    bandwidth_limit = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1024)],
        help_text="Bytes a second that a backup reads at most; empty: no limit.",
    )
    max_parallel = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Dumps at once on this server; empty: no limit.",
    )

    watch = models.BooleanField(default=False, help_text="Register new databases of this server.")
    watch_include = models.JSONField(default=list, blank=True)
    watch_exclude = models.JSONField(default=list, blank=True)
    watch_schedule_id = models.UUIDField(null=True, blank=True)
    # What the last look at the server's databases found (`jobs.discovery`), as JSON.
    watched = models.JSONField(null=True, blank=True, editable=False)
    watched_at = models.DateTimeField(null=True, blank=True, editable=False)

    # What the last connection test or backup saw (`jobs.pgtools.server.ServerFacts` as JSON).
    facts = models.JSONField(null=True, blank=True, editable=False)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "databases"
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="databases_name_per_user")]

    def __str__(self) -> str:
        return self.name
