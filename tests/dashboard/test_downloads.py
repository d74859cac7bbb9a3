from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.models import BackupCopy, BackupJob, Storage
from jobs.storage.local import LocalStore
from tests.admin.conftest import CONTENT, Belongings

MEGABYTE = 1024 * 1024


def url_of(owned: Belongings) -> str:
    return f"/api/backups/{owned.backup.pk}/download"


def body(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def test_the_owner_gets_the_artifact_as_it_was_stored(ada: Belongings) -> None:
    response = ada.client.get(url_of(ada))
    content = body(response)
    assert hashlib.sha256(content).hexdigest() == ada.backup.sha256
    assert response.headers["Content-Length"] == str(len(CONTENT))
    assert response.headers["ETag"] == f'"{ada.backup.sha256}"'
    moment = f"{ada.backup.started_at:%Y%m%dT%H%M%SZ}"
    name = f'attachment; filename="shop-ada_{moment}.dump"'
    assert response.headers["Content-Disposition"] == name
    assert "private" in response.headers["Cache-Control"]


def test_others_are_told_that_there_is_nothing(ada: Belongings, eve: Belongings, root: Client) -> None:
    assert eve.client.get(url_of(ada)).status_code == 404
    assert root.get(url_of(ada)).status_code == 200
    assert "/admin/login/" in Client().get(url_of(ada)).headers["Location"]
    assert ada.client.post(url_of(ada)).status_code == 405


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [("bytes=0-9", 0, 10), ("bytes=9990-", 9990, 10000), ("bytes=-5", 9995, 10000)],
)
def test_a_range_is_a_part(ada: Belongings, header: str, start: int, end: int) -> None:
    response = ada.client.get(url_of(ada), headers={"range": header})
    assert response.status_code == 206
    assert response.headers["Content-Range"] == f"bytes {start}-{end - 1}/10000"
    assert response.headers["Content-Length"] == str(end - start)
    assert body(response) == CONTENT[start:end]


def test_a_range_beyond_the_end_is_416(ada: Belongings) -> None:
    response = ada.client.get(url_of(ada), headers={"range": "bytes=10000-"})
    assert (response.status_code, response.headers["Content-Range"]) == (416, "bytes */10000")


def test_a_download_is_continued_only_while_the_object_is_the_same(ada: Belongings) -> None:
    headers = {"range": "bytes=5000-", "if-range": f'"{ada.backup.sha256}"'}
    assert ada.client.get(url_of(ada), headers=headers).status_code == 206
    response = ada.client.get(url_of(ada), headers=headers | {"if-range": '"another"'})
    assert (response.status_code, len(body(response))) == (200, 10000)


def test_head_has_the_headers_and_no_body(ada: Belongings) -> None:
    response = ada.client.head(url_of(ada))
    assert response.headers["Content-Length"] == "10000"
    assert not response.streaming


def test_a_name_that_headers_cannot_hold_is_made_safe(ada: Belongings) -> None:
    BackupJob.objects.filter(pk=ada.backup.pk).update(database_name='é"\r\nX: y/../z')
    disposition = ada.client.get(url_of(ada)).headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="e-X-y-..-z_')


def test_an_object_that_is_gone_or_changed_is_not_sent_as_if_it_were_good(ada: Belongings) -> None:
    path = Path(ada.storage.folder) / ada.copy.storage_key
    path.chmod(0o600)
    path.write_bytes(CONTENT[:-1])
    response = ada.client.get(url_of(ada))
    assert response.status_code == 503
    assert "do not rely on it" in response.content.decode()
    path.unlink()
    assert ada.client.get(url_of(ada)).status_code == 404


def test_a_backup_without_a_good_copy_is_404(ada: Belongings) -> None:
    ada.backup.copies.update(state="failed")
    assert ada.client.get(url_of(ada)).status_code == 404


def test_a_storage_that_cannot_be_read_is_503_with_the_reason(ada: Belongings) -> None:
    Storage.objects.filter(pk=ada.storage.pk).update(kind="s3", sealed_secret="sealed elsewhere")
    response = ada.client.get(url_of(ada))
    assert response.status_code == 503
    assert "cannot be decrypted" in response.content.decode()


def test_memory_stays_flat(ada: Belongings) -> None:
    path, size = Path(ada.storage.folder) / ada.copy.storage_key, 300 * MEGABYTE
    path.chmod(0o600)
    with path.open("wb") as file:
        file.truncate(size)
    BackupCopy.objects.filter(pk=ada.copy.pk).update(size=size)
    response: Any = ada.client.get(url_of(ada))
    tracemalloc.start()
    received = sum(len(chunk) for chunk in response.streaming_content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert received == size
    assert peak < 8 * MEGABYTE


@pytest.mark.parametrize("trouble", ["gone", "cut short", "unreadable"])
def test_the_next_good_copy_is_sent_when_the_first_does_not_deliver(
    ada: Belongings, tmp_path: Path, trouble: str
) -> None:
    other = Storage.objects.create(user=ada.user, name="other", kind="folder", folder=str(tmp_path / "other"))
    first = ada.copy
    LocalStore(other.folder).prepare()
    LocalStore(other.folder).put_bytes("shop/copy.dump", CONTENT)
    BackupCopy.objects.create(
        backup=ada.backup, storage=other, storage_key="shop/copy.dump", state="good", is_first=False,
        size=first.size, sha256=first.sha256,
    )  # fmt: skip
    path = Path(ada.storage.folder) / first.storage_key
    path.chmod(0o600)
    if trouble == "unreadable":
        Storage.objects.filter(pk=ada.storage.pk).update(kind="s3", sealed_secret="sealed elsewhere")
    elif trouble == "gone":
        path.unlink()
    else:
        path.write_bytes(CONTENT[:-1])
    response = ada.client.get(url_of(ada))
    assert response.status_code == 200
    assert body(response) == CONTENT
