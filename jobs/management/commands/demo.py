"""manage.py demo"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command

from jobs.management.cli import PgbrCommand
from jobs.management.demo import compare, sample, steps
from jobs.management.demo.compare import TableLine
from jobs.management.demo.sample import COPY, SOURCE, DemoFailed, Server
from jobs.management.demo.worker import working
from jobs.management.text import between, columns, size
from jobs.models import BackupJob, RestoreJob
from jobs.pgtools.errors import PgToolsError
from jobs.services import ServiceError
from jobs.storage.base import StoreError
from pgbr.embedded import LocalServerError

SAME, DIFFERENT = "same", "DIFFERENT"


class Command(PgbrCommand):
    help = (
        "Show that it works: back up a sample database through the queue and a worker, restore it into a "
        "second database, compare the two. Exit code 1 if anything is amiss."
    )

    def handle(self, **_: Any) -> None:
        try:
            same = self._run()
        except (DemoFailed, LocalServerError, ServiceError, PgToolsError, StoreError, psycopg.Error) as error:
            self.stderr.write(f"The demo failed: {error}")
            raise SystemExit(1) from error
        if not same:
            self.stderr.write("The demo failed: the copy differs from its source, see above.")
            raise SystemExit(1)

    def _run(self) -> bool:
        self._step("preparing tables and a sample database")
        call_command("migrate", verbosity=0, interactive=False)
        user = steps.account()
        with sample.prepared(settings.PGBR_HOME) as server:
            database = steps.registered(user, server)
            self._step("backing it up through the queue and a worker")
            with working("backup", "restore") as worker:
                backup = steps.back_up(database, user, worker)
                self._step("restoring that in the same way, and comparing")
                restore = steps.restore(backup, database, user, server, worker)
            return self._compare(backup, restore, server)

    def _step(self, words: str) -> None:
        self.say(f"... {words}")
        self.stdout.flush()

    def _compare(self, backup: BackupJob, restore: RestoreJob, server: Server) -> bool:
        with sample.connect(server.of_role(SOURCE)) as ours, sample.connect(server.of_role(COPY)) as theirs:
            tables = compare.tables(ours, theirs)
            definitions = compare.definitions(ours, theirs)
        self._describe(backup, restore, server)
        self.say("")
        self._table(tables)
        for kind, (count, same) in definitions.items():
            self.say(f"  {kind + ':':<15}{count:>3}  {SAME if same else DIFFERENT}")
        self._next()
        alike = [table.same for table in tables] + [same for _, same in definitions.values()]
        return bool(tables) and all(alike)

    def _describe(self, backup: BackupJob, restore: RestoreJob, server: Server) -> None:
        copy = backup.copies.select_related("storage").get(is_first=True)
        place = copy.storage.folder or f"{copy.storage.endpoint or 'S3'} {copy.storage.bucket}"
        source = server.of_role(SOURCE)
        self.say(f"\nbackup    {backup.id}, completed in {between(backup.started_at, backup.completed_at)}")
        self.say(f"size      {backup.size} bytes ({size(backup.size)})")
        self.say(f"sha256    {backup.sha256}")
        self.say(f"lies in   {place}")
        self.say(f"          {backup.storage_key} (beside it its manifest, .json)")
        self.say(f"source    {source.dbname}, owned by {source.user}, at 127.0.0.1:{source.port}")
        self.say(f"restore   {restore.id}, completed in {between(restore.started_at, restore.completed_at)}")
        self.say(f"copy      {COPY} on the same server ({restore.mode})")

    def _table(self, tables: Sequence[TableLine]) -> None:
        lines = [
            [table.name, _rows(table.source_rows), _rows(table.copy_rows), SAME if table.same else DIFFERENT]
            for table in tables
        ]
        for line in columns(("table", "rows in source", "rows in copy", "content"), lines, right=[1, 2]):
            self.say(f"  {line}")
        self.say("")

    def _next(self) -> None:
        self.say(
            f"\nState lies in {settings.PGBR_HOME}; `python manage.py embedded_db stop` stops the server."
        )
        self.say("Next: `make run` serves the dashboard and prints how to log in.")


def _rows(count: int) -> str:
    return f"{count:,}" if count >= 0 else "missing"
