"""The web process stays small however large the files are that pass through it.

With WEB_GROWTH_MB=2000 it shows that for a larger one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from bench.processes import MB, at_rest, own_processes, watched
from jobs.models import BackupCopy, BackupJob, Database, Storage, Upload
from jobs.stores import default_storage, store_for
from tests import s3server
from tests.services.test_storages import environment
from tests.services.test_uploads import DUMP
from tests.website import Website

pytestmark = pytest.mark.django_db(transaction=True)

GROWTH_LIMIT = 40.0  # MB
MEGABYTES = {"folder": 150, "S3": 60} | dict.fromkeys(
    ["folder", "S3"] if "WEB_GROWTH_MB" in os.environ else [], int(os.environ.get("WEB_GROWTH_MB", "0"))
)
KEY = "shop/large.sql"
LINE = b"-- something that is not read\n"


@pytest.fixture(params=["folder", "S3"])
def storage(request: pytest.FixtureRequest, db: None, settings: Settings) -> Iterator[Storage]:
    """The default storage, empty again at the end."""
    if request.param == "S3":
        settings.ENVIRONMENT_STORAGE = environment(s3server.shared().new_bucket())
    chosen = default_storage()
    store = store_for(chosen)
    store.prepare()
    yield chosen
    for key in [KEY, *Upload.objects.values_list("storage_key", flat=True)]:
        store.delete(key)


@pytest.fixture
def website(
    storage: Storage, transactional_db: None, tmp_path: Path, settings: Settings
) -> Iterator[Website]:
    place = settings.ENVIRONMENT_STORAGE or {}
    given = {f"STORAGE_{name.upper()}": str(value) for name, value in place.items() if value}
    running = Website(tmp_path / "web.log", **given)
    yield running
    running.stop()


@pytest.fixture
def large_backup(storage: Storage, user: User, make_database: Callable[..., Database]) -> BackupJob:
    megabytes = MEGABYTES["folder" if storage.folder else "S3"]
    digest = hashlib.sha256()
    with store_for(storage).writer(KEY) as writer:
        for piece in [DUMP, *[LINE * (MB // len(LINE))] * megabytes]:
            digest.update(piece)
            writer.write(piece)
        writer.commit()
    stored = {"storage_key": KEY, "size": writer.size, "sha256": digest.hexdigest()}
    database = make_database("postgresql://a:b@c/d")
    backup = BackupJob.objects.create(user=user, database=database, database_name="shop", **stored)
    BackupCopy.objects.create(backup=backup, storage=storage, state="good", **stored)
    return backup


def streamed(response: HTTPResponse) -> Iterator[bytes]:
    assert response.status == 200
    while piece := response.read(MB):
        yield piece


def test_a_download_that_is_uploaded_again_grows_the_web_process_by_at_most_40_mb(
    website: Website, large_backup: BackupJob, user: User, other_user: User
) -> None:
    url, size = f"/api/backups/{large_backup.pk}/download", large_backup.size or 0
    pids = own_processes(website.process.pid)
    idle = at_rest(pids, seconds=0.3)
    with watched(pids) as watch:
        artifact = streamed(website.request(user, "GET", url))
        answer = website.request(
            user, "POST", "/api/uploads?name=again.sql", artifact, content_length=str(size)
        )
        assert (answer.status, json.loads(answer.read())["sha256"]) == (201, large_backup.sha256)
        part = website.request(user, "GET", url, range=f"bytes={size - len(LINE)}-").read()
    assert part == LINE
    assert website.request(other_user, "GET", url).status == 404
    assert watch.samples > 5
    assert watch.highest.total - idle.total <= GROWTH_LIMIT, (idle, watch.highest)
