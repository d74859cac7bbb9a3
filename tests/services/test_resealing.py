from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet
from pytest_django.fixtures import Settings

from jobs.crypto import CannotDecrypt, Sealer
from jobs.models import Database, Storage
from jobs.resealing import reseal_all
from jobs.secrets import unseal

NEW = Fernet.generate_key().decode()
URL = "postgresql://a:secret@h/d"


def test_every_secret_opens_with_the_new_key_alone(
    make_database: Callable[..., Database], settings: Settings
) -> None:
    database = make_database(URL)
    storage = Storage.objects.create(user=database.user, name="s", sealed_secret=database.sealed_url)
    settings.ENCRYPTION_KEYS = [NEW, *settings.ENCRYPTION_KEYS]
    assert reseal_all() >= 2
    settings.ENCRYPTION_KEYS = [NEW]
    database.refresh_from_db()
    storage.refresh_from_db()
    assert (unseal(database.sealed_url, "it"), unseal(storage.sealed_secret, "it")) == (URL, URL)
    assert database.sealed_client_key == ""


def test_one_secret_that_no_key_opens_leaves_all_as_they_were(
    make_database: Callable[..., Database], settings: Settings
) -> None:
    database = make_database(URL)
    foreign = Sealer([Fernet.generate_key().decode()]).seal("x")
    Storage.objects.create(user=database.user, name="s", sealed_secret=foreign)
    settings.ENCRYPTION_KEYS = [NEW, *settings.ENCRYPTION_KEYS]
    with pytest.raises(CannotDecrypt, match="sealed_secret of storage s"):
        reseal_all()
    before = database.sealed_url
    database.refresh_from_db()
    assert database.sealed_url == before
