"""The pages of uploads: what they show and to whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from jobs import uploads
from jobs.models import ActivityEvent, Upload
from tests.admin.conftest import Belongings
from tests.conftest import Enqueue
from tests.dashboard.test_pages import INLINE
from tests.services.test_uploads import DUMP, PAST

LIST = "/admin/jobs/upload/"
ADD = f"{LIST}add/"
HOSTILE = "<script>alert(1)<script>.sql"


@pytest.fixture(autouse=True)
def own_folder(settings: Settings, tmp_path: Path) -> None:
    settings.BACKUP_FOLDER = tmp_path / "backups"


@pytest.fixture
def upload(ada: Belongings) -> Upload:
    return uploads.receive(ada.user, "shop.sql", iter([DUMP]))


def step(upload: Upload, name: str) -> str:
    return f"{LIST}{upload.pk}/{name}/"


def exists(upload: Upload) -> bool:
    return Upload.objects.filter(pk=upload.pk).exists()


def test_what_is_known_of_an_upload_is_shown(ada: Belongings, upload: Upload) -> None:
    page = ada.client.get(step(upload, "change")).content.decode()
    texts = ("made by pg_dump 17.6", str(upload.sha256), upload.storage_key, f"{len(DUMP)} bytes", "in 2")
    for shown in texts:
        assert shown in page, shown
    listed = ada.client.get(LIST).content.decode()
    assert "shop.sql" in listed
    assert "complete" in listed
    assert 'href="/admin/jobs/upload/"' in ada.client.get("/admin/").content.decode()


def test_rows_of_any_state_and_shape_have_a_page(ada: Belongings, upload: Upload) -> None:
    shapes: dict[str, Any] = {"writing": None, "deleting": [], "failed": {}, "good": {"in_words": HOSTILE}}
    for state, facts in shapes.items():
        Upload.objects.update(state=state, facts=facts, name=HOSTILE, size=None, keep_until=None)
        for url in (LIST, step(upload, "change"), step(upload, "delete")):
            response = ada.client.get(url)
            assert response.status_code == 200
            assert HOSTILE not in response.content.decode()


def test_the_form_leads_to_the_interface_without_inline_code(ada: Belongings, settings: Settings) -> None:
    settings.UPLOAD_MAX_BYTES = 1_500_000
    page = ada.client.get(ADD).content.decode()
    assert not INLINE.search(page)
    assert 'data-api="/api/uploads"' in page
    assert 'data-most="1500000"' in page
    assert "at most 1.50 MB" in page
    assert f'data-detail="/admin/jobs/upload/{UUID(int=0)}/change/"' in page
    for file in re.findall(r'"/static/pgbr/(upload\.\w+)"', page):
        assert ada.client.get(f"/static/pgbr/{file}").status_code == 200
    without_script = page[page.index("<noscript>") : page.index("</details>")]
    assert "needs JavaScript" in without_script
    assert "curl -X POST -T dump.sql" in without_script


def test_an_upload_is_kept(ada: Belongings, upload: Upload) -> None:
    assert ada.client.get(step(upload, "keep")).status_code == 405
    page = ada.client.post(step(upload, "keep"), follow=True).content.decode()
    assert "kept until you delete it" in page
    upload.refresh_from_db()
    assert upload.keep_until is None
    Upload.objects.update(keep_until=PAST)
    ada.client.post(LIST, {"action": "keep", "_selected_action": [upload.pk]})
    upload.refresh_from_db()
    assert upload.keep_until is None


def test_an_upload_is_deleted_once_its_name_was_typed(ada: Belongings, upload: Upload) -> None:
    answer = ada.client.post(LIST, {"action": "delete_uploads", "_selected_action": [upload.pk]})
    assert answer.headers["Location"] == f"{LIST}delete/?ids={upload.pk}"
    for url in (step(upload, "delete"), answer.headers["Location"]):
        assert ada.client.post(url, {"word": "another"}).status_code == 400
    assert exists(upload)
    page = ada.client.post(step(upload, "delete"), {"word": "shop.sql"}, follow=True).content.decode()
    assert "1 upload deleted" in page
    assert not exists(upload)


def test_an_upload_in_use_says_why_it_stays(ada: Belongings, upload: Upload, enqueue: Enqueue) -> None:
    enqueue("restore", {"upload_id": str(upload.pk)})
    page = ada.client.post(step(upload, "delete"), {"word": "shop.sql"}).content.decode()
    assert "a restore from it waits or runs" in page
    assert exists(upload)


def test_what_belongs_to_others_does_not_exist(ada: Belongings, eve: Belongings, upload: Upload) -> None:
    events = ActivityEvent.objects.count()
    for url in [*(step(upload, name) for name in ("change", "delete")), f"{LIST}delete/?ids={upload.pk}"]:
        response = eve.client.get(url)
        assert response.status_code == 404 or response.headers["Location"] == "/admin/", url
    for url in (step(upload, "keep"), step(upload, "delete"), f"{LIST}delete/?ids={upload.pk}"):
        assert eve.client.post(url, {"word": "shop.sql"}).status_code == 404
    for action in ("keep", "delete_uploads"):
        eve.client.post(LIST, {"action": action, "_selected_action": [upload.pk]})
    assert "shop.sql" not in eve.client.get(LIST).content.decode()
    assert ActivityEvent.objects.count() == events
    assert exists(upload)


def test_strangers_are_asked_for_a_login(upload: Upload, root: Client) -> None:
    for url in (LIST, ADD, step(upload, "change"), step(upload, "delete")):
        assert "/admin/login/" in Client().get(url).headers["Location"], url
        assert root.get(url).status_code == 200
