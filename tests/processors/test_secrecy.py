"""Who watches the processes, the logs and the rows of a backup never sees a password of a user's server."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from django.conf import settings
from django.db import connection

from jobs import services
from jobs.models import BackupJob, Database, QueuedJob
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import default_storage, store_for
from tests import servers
from tests.conftest import StartWorker
from tests.waiting import until
from tests.workers import RunningWorker

from .conftest import NOISE_BYTES, Source

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = servers.PASSWORDS[servers.SUPERUSER]
WRONG = "wr0ng:pass\\word"
SHAPES = {
    shape(password)
    for password in (SECRET, WRONG)
    for shape in (str, quote, quote_plus, repr, lambda text: text.replace("\\", "\\\\").replace(":", "\\:"))
}


def shown_in(text: str) -> list[str]:
    return [shape for shape in SHAPES if shape in text]


class Watch:
    """Looks at everything that anybody on the machine, or of the same account, can see of the processes."""

    def __init__(self, worker: RunningWorker) -> None:
        self._worker = worker
        self.programs: set[str] = set()
        self.found: list[str] = []
        self.modes: set[int] = set()

    def look(self) -> None:
        for pid in self._worker.pids():
            with suppress(OSError):
                text = "".join(
                    (Path("/proc") / str(pid) / name).read_bytes().decode("utf-8", "replace")
                    for name in ("cmdline", "environ")
                )
                self.programs.add(Path(text.partition("\0")[0]).name)
                self.programs |= {part for part in ("pg_dump", "pg_dumpall") if f"/{part}\0" in text}
                self.found += [f"{pid}: {shape}" for shape in shown_in(text)]
        for folder, _, names in os.walk(settings.SCRATCH_FOLDER):  # which is used and swept meanwhile
            for path in (Path(folder) / name for name in names if not name.startswith(("toc", "blob"))):
                with suppress(OSError):
                    if path.stat().st_size < 10_000 and shown_in(path.read_text(errors="replace")):
                        self.modes.add(stat.S_IMODE(path.stat().st_mode))


def everything_kept() -> str:
    """All rows of all tables that pgbr writes, as text."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        text = ""
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" AS t')
            text += "\n".join(row[0] for row in cursor.fetchall())
    return text


def test_no_password_shows_in_processes_logs_rows_or_objects(
    make_database: Callable[..., Database], noise: Source, start_worker: StartWorker, tool_folders: list[str]
) -> None:
    url = noise.server.superuser_url(noise.name)
    good = make_database(url, "good", bandwidth_limit=NOISE_BYTES // 2)
    wrong = make_database(noise.server.url(noise.name, servers.SUPERUSER, WRONG), "wrong")
    orders: list[tuple[Database, dict[str, Any]]] = [
        (good, {}), (good, {"format": "directory", "jobs": 2}), (wrong, {}),
    ]  # fmt: skip
    jobs = [services.enqueue_backup(database, flags, by=database.user) for database, flags in orders]
    worker = start_worker("--queue", "backup", PGBR_PG_BIN=",".join(tool_folders))
    watch = Watch(worker)

    def ended() -> bool:
        watch.look()
        return not QueuedJob.objects.filter(status__in=["pending", "active"]).exists()

    until(ended, "all three have ended", seconds=60)
    states = [BackupJob.objects.get(id=job_id).status for job_id in jobs]
    assert states == ["completed", "completed", "failed"]
    assert "pg_dump" in watch.programs
    assert watch.found == []
    assert watch.modes == {0o600}
    assert worker.terminate() == 0
    assert shown_in(worker.text()) == []
    assert shown_in(everything_kept()) == []
    assert_objects_are_silent(jobs[0])


def assert_objects_are_silent(job_id: uuid.UUID) -> None:
    key = BackupJob.objects.get(id=job_id).storage_key or ""
    store = store_for(default_storage())
    for name in (manifest_key(key), globals_key(key)):
        assert shown_in(b"".join(store.read(name)).decode()) == []
