from __future__ import annotations

from pathlib import Path

import pytest

from jobs.storage.base import Store
from jobs.storage.local import LocalStore
from tests import s3server
from tests.s3server import S3Server
from tests.storage.stores import s3_store


@pytest.fixture(scope="session")
def weed() -> S3Server:
    return s3server.shared()


@pytest.fixture
def bucket(weed: S3Server) -> str:
    return weed.new_bucket()


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        made: Store = LocalStore(tmp_path / "backups", name="the folder")
    else:
        weed: S3Server = request.getfixturevalue("weed")
        made = s3_store(weed, request.getfixturevalue("bucket"))
    made.prepare()
    return made
