"""What cannot work fails with a message to act on, leaves nothing and stops nobody: payloads and keys."""

from __future__ import annotations

import uuid
from typing import Any

from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from jobs.models import Database, Storage
from jobs.secrets import seal
from tests.conftest import Enqueue

from .conftest import Backups, Fail, Source


def payload_for(database: Database, **changes: Any) -> dict[str, Any]:
    return {"database_id": str(database.id), "database_name": database.name, "flags": {}} | changes


SHAPES: list[Any] = [
    [], "x", 5, None, True, {}, {"flags": {}}, {"flags": []}, {"database_id": 7, "flags": {}},
    {"database_id": ["a"], "flags": {}, "database_name": {"a": 1}}, {"database_id": None, "flags": {}},
]  # fmt: skip


def test_payloads_of_another_shape(backups: Backups, enqueue: Enqueue, fails: Fail) -> None:
    for shape in SHAPES:
        row = fails(enqueue(payload=shape).id, "payload")
        assert "expected shape" in (row.error or "") or "no valid database_id" in (row.error or "")


CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({"flags": {"format": "custom", "jobs": 4}}, ["jobs: dumping in parallel needs format directory"]),
    ({"flags": {"data_only": True, "schema_only": True}}, ["data_only and schema_only exclude each other"]),
    ({"flags": {"jobs": "4", "nonsense": 1}},
     ["There is no option 'nonsense'", "jobs must be a whole number"]),
    ({"flags": {"tables": ["--help\n"]}}, ["tables:", "control characters"]),
    ({"storage_id": "x"}, ["no valid storage_id"]),
    ({"storage_id": None}, ["no valid storage_id"]),
    ({"storage_id": str(uuid.uuid4())}, ["does not exist any more", "Choose another one"]),
    ({"database_id": str(uuid.uuid4())}, ["is not registered any more"]),
]  # fmt: skip


def test_payloads_are_not_trusted(backups: Backups, shop: Source, enqueue: Enqueue, fails: Fail) -> None:
    database = backups.register(shop.url)
    for changes, words in CHANGES:
        fails(enqueue(payload=payload_for(database, **changes)).id, *words)


def test_a_payload_that_names_what_is_anothers(
    backups: Backups, shop: Source, enqueue: Enqueue, fails: Fail, other_user: User
) -> None:
    own = backups.register(shop.url)
    foreign = Database.objects.create(user=other_user, name="eve's", sealed_url=seal(shop.url))
    bucket = Storage.objects.create(user=other_user, name="eve's", kind="folder", folder="/tmp/eve")
    row = fails(enqueue(payload=payload_for(foreign)).id, "is not registered any more")
    assert row.database_id is None
    fails(enqueue(payload=payload_for(own, storage_id=str(bucket.id))).id, "does not exist any more")


def test_a_url_that_no_key_opens(backups: Backups, shop: Source, fails: Fail, settings: Settings) -> None:
    keys = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    database = backups.register(shop.url, "locked away")
    settings.ENCRYPTION_KEYS = keys
    fails(
        backups.order(database),
        "The URL of the database 'locked away'",
        "ENCRYPTION_KEY",
        "enter the secret again",
    )


def test_a_url_that_is_none(backups: Backups, fails: Fail) -> None:
    fails(backups.order(backups.register("mysql://app:pw@host/shop")), "must begin with postgresql://")
