from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from jobs.models import Storage
from jobs.secrets import unseal
from jobs.storage.local import LocalStore
from jobs.stores import follow_settings
from jobs.sweeping import sweep
from tests.admin.conftest import Belongings, browser, stored_backup

STRAY = "20260102T030405Z_shop_0011aabb-ccdd.dump"
ADD = "/admin/jobs/storage/add/"
S3 = {
    "name": "offsite", "endpoint": "https://s3.example.test", "region": "eu-1", "bucket": "b",
    "prefix": "/p/",    "access_key_id": "AK", "secret": "s3cret-key", "force_path_style": "on",
}  # fmt: skip


@pytest.fixture
def built_in(db: None) -> Storage:
    follow_settings()
    return Storage.objects.get(origin="built_in")


def page_of(storage: Storage, step: str = "change") -> str:
    return f"/admin/jobs/storage/{storage.pk}/{step}/"


def test_an_s3_storage_is_added_with_its_secret_sealed(ada: Belongings) -> None:
    ada.client.post(ADD, S3)
    storage = Storage.objects.get(name="offsite")
    assert (storage.user, storage.kind, storage.prefix) == (ada.user, "s3", "p")
    assert unseal(storage.sealed_secret, "it") == "s3cret-key"
    assert "s3cret-key" not in ada.client.get(page_of(storage)).content.decode()


def test_the_secret_stays_when_left_empty_and_is_never_sent_back(ada: Belongings) -> None:
    ada.client.post(ADD, S3)
    storage = Storage.objects.get(name="offsite")
    ada.client.post(page_of(storage), S3 | {"secret": "", "region": "eu-2"})
    storage.refresh_from_db()
    assert (storage.region, unseal(storage.sealed_secret, "it")) == ("eu-2", "s3cret-key")
    response = ada.client.post(ADD, S3 | {"name": "", "secret": "s3cret-other"})
    assert response.status_code == 200
    assert "s3cret-other" not in response.content.decode()


@pytest.mark.parametrize("missing", ["bucket", "access_key_id", "secret", "name"])
def test_what_an_s3_storage_needs_is_asked_for(ada: Belongings, missing: str) -> None:
    response = ada.client.post(ADD, S3 | {missing: ""})
    assert response.status_code == 200
    assert response.context["adminform"].form.errors.keys() == {missing}


def test_a_name_is_taken_once_per_account(ada: Belongings) -> None:
    response = ada.client.post(ADD, S3 | {"name": ada.storage.name})
    assert "exists already" in response.content.decode()


def test_a_folder_on_the_workers_machine_is_a_superusers_to_give(ada: Belongings, root: Client) -> None:
    folder = {"name": "etc", "kind": "folder", "folder": "/etc"}
    ada.client.post(ADD, S3 | folder)
    assert Storage.objects.get(name="etc").kind == "s3"
    assert root.post(ADD, folder | {"name": "srv", "folder": "srv"}).status_code == 200
    assert root.post(ADD, folder | {"name": "srv", "folder": "/srv/backups"}).status_code == 302
    assert Storage.objects.get(name="srv").folder == "/srv/backups"


def test_the_place_of_stored_backups_does_not_move(ada: Belongings, root: Client) -> None:
    changed = {"name": "renamed", "kind": "folder", "folder": "/elsewhere"}
    page = root.post(page_of(ada.storage), changed)
    # Ada is no superuser, and hers follows her rights whoever edits it: the folder is not even offered.
    assert page.status_code == 302
    ada.storage.refresh_from_db()
    assert ada.storage.folder != "/elsewhere"
    ada.client.post(ADD, S3)
    offsite = Storage.objects.get(name="offsite")
    ada.copy.storage_id = offsite.pk
    ada.backup.copies.update(storage=offsite)
    response = ada.client.post(page_of(offsite), S3 | {"bucket": "other", "secret": ""})
    assert "would be out of reach" in response.content.decode()


def test_storages_of_the_instance_are_to_look_at(ada: Belongings, root: Client, built_in: Storage) -> None:
    for client in (ada.client, root):
        assert client.get(page_of(built_in)).status_code == 200
        assert client.post(page_of(built_in), S3).status_code == 403
        page = client.post(page_of(built_in, "delete"), {"word": built_in.name}).content.decode()
        assert "belongs to this instance" in page
    built_in.refresh_from_db()
    assert built_in.name == "local folder"


def test_where_the_instance_keeps_its_files_is_told_to_superusers_only(
    ada: Belongings, root: Client, built_in: Storage
) -> None:
    for url in ("/admin/jobs/storage/", page_of(built_in)):
        assert built_in.folder not in ada.client.get(url).content.decode()
        assert built_in.folder in root.get(url).content.decode()


def test_a_test_reports_each_permission_by_itself(ada: Belongings) -> None:
    page = ada.client.post(page_of(ada.storage, "test"), follow=True).content.decode()
    assert "put, get, list and delete work" in page
    ada.storage.refresh_from_db()
    assert ada.storage.test_result == {"put": None, "get": None, "list": None, "delete": None}


@pytest.mark.django_db(transaction=True)
def test_a_storage_is_tried_when_it_is_saved(root: Client) -> None:
    folder = {"name": "srv", "kind": "folder", "folder": "/proc/nowhere"}
    page = root.post(ADD, folder, follow=True).content.decode()
    assert "srv cannot be used" in page
    assert page_of(Storage.objects.get(name="srv"), "test") in page


def test_a_failing_test_says_why(ada: Belongings) -> None:
    Storage.objects.filter(pk=ada.storage.pk).update(folder="/proc/nowhere")
    page = ada.client.post(page_of(ada.storage, "test"), follow=True).content.decode()
    assert "cannot be used" in page


def test_the_instances_storage_is_tested_by_superusers_only(
    ada: Belongings, root: Client, built_in: Storage
) -> None:
    page = ada.client.post(page_of(built_in, "test"), follow=True).content.decode()
    assert "a superuser can test it" in page
    root.post(page_of(built_in, "test"))
    built_in.refresh_from_db()
    assert built_in.tested_at is not None


def test_a_storage_in_use_is_not_deleted(ada: Belongings) -> None:
    page = ada.client.post(page_of(ada.storage, "delete"), {"word": ada.storage.name}).content.decode()
    assert "backups lie in it" in page
    ada.client.post(ADD, S3)
    unused = Storage.objects.get(name="offsite")
    ada.client.post(page_of(unused, "delete"), {"word": "offsite"})
    assert not Storage.objects.filter(pk=unused.pk).exists()


def test_a_demoted_superuser_keeps_the_folder_but_cannot_move_it(superuser: Any, root: Client) -> None:
    root.post(ADD, {"name": "srv", "kind": "folder", "folder": "/srv/backups"})
    superuser.is_superuser = False
    superuser.save()
    storage = Storage.objects.get(name="srv")
    client = browser(superuser)
    assert client.post(page_of(storage), {"name": "mine", "folder": "/etc"}).status_code == 302
    storage.refresh_from_db()
    assert (storage.name, storage.folder) == ("mine", "/srv/backups")


def test_the_page_shows_what_the_sweep_has_found(ada: Belongings) -> None:
    lost = stored_backup(ada.database, ada.storage)
    LocalStore(ada.storage.folder).delete(str(lost.storage_key))
    LocalStore(ada.storage.folder).put_bytes(f"shop/{STRAY}", b"stray")
    sweep(ada.storage)
    page = ada.client.get(page_of(ada.storage)).content.decode()
    assert "1 copy without an object" in page
    assert str(lost.pk) in page
    assert STRAY in page
    assert "there is no manifest that says who made it" in page


def test_a_sweep_can_be_asked_for_by_whoever_has_the_storage_in_hand(
    ada: Belongings, built_in: Storage, root: Client
) -> None:
    Storage.objects.update(swept_at=Now())
    page = ada.client.post(page_of(ada.storage, "sweep"), follow=True).content.decode()
    assert "within five minutes" in page
    ada.client.post(page_of(built_in, "sweep"))
    assert list(Storage.objects.filter(swept_at=None)) == [ada.storage]
    root.post(page_of(built_in, "sweep"))
    assert Storage.objects.get(pk=built_in.pk).swept_at is None
