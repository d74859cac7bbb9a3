"""Rows that follow the settings, and what becomes of old ones."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.db import connections
from pytest_django.fixtures import Settings

from jobs.artifacts import good_copies, opened, probe_storage
from jobs.models import BackupJob, Storage
from jobs.secrets import seal, unseal
from jobs.stores import default_storage, follow_settings, store_for, usable_by
from tests import s3server

from .conftest import CONTENT, FinishedBackup

pytestmark = pytest.mark.django_db


@pytest.fixture
def no_rows(db: None) -> None:
    """Not even those that migrating has made."""
    Storage.objects.all().delete()


def environment(bucket: str, **changes: Any) -> dict[str, Any]:
    server = s3server.shared()
    return {
        "endpoint": server.endpoint, "region": "us-east-1", "bucket": bucket, "prefix": "",
        "access_key_id": server.access_key, "secret_access_key": server.secret_key, "force_path_style": True,
    } | changes  # fmt: skip


def read(backup: BackupJob) -> bytes:
    copy = good_copies(backup)[0]
    return b"".join(opened(copy).read(copy.storage_key))


def test_another_bucket_in_the_settings_leaves_old_copies_within_reach(
    settings: Settings, finished_backup: FinishedBackup
) -> None:
    server = s3server.shared()
    settings.ENVIRONMENT_STORAGE = environment(server.new_bucket())
    first = default_storage()
    old = finished_backup()
    settings.ENVIRONMENT_STORAGE = environment(server.new_bucket())
    second = default_storage()
    new = finished_backup()
    assert second.id != first.id
    first.refresh_from_db()
    assert (first.origin, second.origin) == ("saved", "environment")
    assert first.name != second.name
    assert "before" in first.name
    assert read(old) == read(new) == CONTENT
    assert {backup.copies.get().storage_id for backup in (old, new)} == {first.id, second.id}
    settings.ENVIRONMENT_STORAGE = None
    assert default_storage().origin == "built_in"
    assert read(new) == CONTENT


def test_another_folder_leaves_old_copies_within_reach(
    settings: Settings, finished_backup: FinishedBackup, tmp_path: Path
) -> None:
    old = finished_backup()
    settings.BACKUP_FOLDER = tmp_path / "elsewhere"
    assert default_storage().folder == str(tmp_path / "elsewhere")
    assert read(old) == CONTENT


def test_the_same_settings_keep_one_row(no_rows: None, settings: Settings) -> None:
    settings.ENVIRONMENT_STORAGE = environment("one")
    ids = {default_storage().id for _ in range(3)}
    follow_settings()
    assert len(ids) == 1
    assert Storage.objects.count() == 2


def test_new_keys_and_prefix_are_taken_over_into_the_same_row(settings: Settings) -> None:
    settings.ENVIRONMENT_STORAGE = environment("one")
    first = default_storage()
    settings.ENVIRONMENT_STORAGE = environment("one", secret_access_key="n3w", prefix="p", access_key_id="k")
    row = default_storage()
    assert (row.id, row.prefix, row.access_key_id) == (first.id, "p", "k")
    assert unseal(row.sealed_secret, "it") == "n3w"
    assert "n3w" not in str(Storage.objects.values())


def test_a_secret_that_no_key_opens_any_more_is_replaced_by_the_settings(settings: Settings) -> None:
    settings.ENVIRONMENT_STORAGE = environment("one")
    first = default_storage()
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    row = default_storage()
    assert row.id == first.id
    assert unseal(row.sealed_secret, "it") == s3server.shared().secret_key


@pytest.mark.django_db(transaction=True)
def test_many_processes_that_follow_changed_settings_at_once_agree(settings: Settings) -> None:
    Storage.objects.all().delete()
    settings.ENVIRONMENT_STORAGE = environment("one")
    default_storage()
    settings.ENVIRONMENT_STORAGE = environment("two")
    errors: list[BaseException] = []
    start = threading.Barrier(6)

    def follow() -> None:
        try:
            start.wait(20)
            follow_settings()
        except BaseException as error:  # noqa: BLE001  shown by the assertion
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=follow) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(Storage.objects.values_list("origin", "bucket")) == [
        ("built_in", ""), ("environment", "two"), ("saved", "one"),
    ]  # fmt: skip


def test_everyone_uses_the_instances_storages_and_their_own(
    no_rows: None, user: User, other_user: User
) -> None:
    own = Storage.objects.create(user=user, name="own", kind="folder", folder="/tmp/own")
    of_the_instance = default_storage()
    assert set(usable_by(user)) == {of_the_instance, own}
    assert set(usable_by(other_user)) == {of_the_instance}


def test_a_test_tells_each_permission_by_itself_and_is_kept(s3_storage: Storage, user: User) -> None:
    who = s3server.NO_DELETE
    for access_key, secret, lacking in (
        (s3server.FULL.access_key, s3server.FULL.secret_key, set()),
        (who.access_key, who.secret_key, {"delete"}),
        (who.access_key, "wrong", {"put", "get", "list", "delete"}),
    ):
        Storage.objects.filter(id=s3_storage.id).update(access_key_id=access_key, sealed_secret=seal(secret))
        s3_storage.refresh_from_db()
        result = probe_storage(s3_storage, by=user)
        assert {name for name, error in result.items() if error} == lacking
        s3_storage.refresh_from_db()
        assert (s3_storage.test_result, s3_storage.tested_at is not None) == (result, True)


def test_a_store_is_called_by_the_name_of_its_row(user: User, tmp_path: Path) -> None:
    folder = Storage.objects.create(user=user, name="my nas", kind="folder", folder=str(tmp_path / "nas"))
    bucket = Storage.objects.create(
        user=user, name="my bucket", endpoint="http://127.0.0.1:9", bucket="b", access_key_id="k",
        sealed_secret=seal("s"),
    )  # fmt: skip
    assert "'my nas'" in store_for(folder).name
    assert "'my bucket'" in store_for(bucket).name
