"""A database row -> how to reach it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models.functions import Now

from jobs.models import Database
from jobs.pgtools.conninfo import Conninfo
from jobs.secrets import unseal


def conninfo_for(database: Database) -> Conninfo:
    """Raises `jobs.crypto.CannotDecrypt`, or `jobs.pgtools.errors.InvalidConninfo` where a rule has become
    stricter since the row was saved."""
    what = f"the database {database.name!r}"
    return parse(
        unseal(database.sealed_url, f"The URL of {what}"),
        owner=database.user,
        sslmode=database.sslmode,
        ca_certificate=database.ca_certificate,
        client_certificate=database.client_certificate,
        client_key=unseal(database.sealed_client_key, f"The client key of {what}"),
    )


def parse(
    url: str,
    *,
    owner: User,
    sslmode: str = "",
    ca_certificate: str = "",
    client_certificate: str = "",
    client_key: str = "",
) -> Conninfo:
    """Check a URL and TLS material as given. Only a superuser's may lend the worker's files and sockets.
    Raises `InvalidConninfo`, which never shows the password."""
    return Conninfo.parse(
        url,
        sslmode=sslmode,
        ca_pem=ca_certificate,
        cert_pem=client_certificate,
        key_pem=client_key,
        trusted=owner.is_superuser,
    )


def remember_facts(database: Database, facts: Mapping[str, Any]) -> None:
    """Keep what was last seen of the server (`ServerFacts` as JSON), for the pages. Adds to what is known."""
    known = database.facts if isinstance(database.facts, dict) else {}
    Database.objects.filter(id=database.id).update(facts=known | dict(facts), checked_at=Now())
