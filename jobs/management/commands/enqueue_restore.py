"""manage.py enqueue_restore"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import CommandParser
from django.db.models import Q

from jobs import restoring, services, uploads
from jobs.management.aim import AimedCommand
from jobs.management.cli import Refused, acting_user
from jobs.management.text import printable, size
from jobs.models import BackupJob, Upload
from jobs.models.history import Status
from jobs.models.storage import CopyState
from jobs.restoring import RestoreOrder
from jobs.targets import conninfo_for

LATEST = "latest:"
CHUNK_BYTES = 1 << 20


class Command(AimedCommand):
    help = "Queue a restore into a registered database, or beside it under another name."

    def add_arguments(self, parser: CommandParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "source",
            nargs="?",
            metavar="BACKUP_ID",
            help=f"or {LATEST}NAME: the newest good one of a database",
        )
        source.add_argument(
            "--file",
            metavar="PATH",
            type=Path,
            help="a dump on this machine; it is stored for the worker first",
        )
        parser.add_argument(
            "--into", required=True, metavar="NAME", help="a registered database: its server and login"
        )
        super().add_arguments(parser)

    def handle(self, **options: Any) -> None:
        user = acting_user(options["user"])
        into = services.find_database(user, options["into"])
        order = RestoreOrder(
            database=into,
            mode=self.mode(options),
            target_name=options["as_name"] or conninfo_for(into).dbname,
            flags=self.flags(options),
        )
        look = partial(restoring.check_restore, by=user)
        with self._from(order, user, options) as order:
            order = self.aimed(order, look, options)
            job_id = restoring.enqueue_restore(order, by=user)
        words = f"Restore into {order.target_name} ({order.mode}) queued: {job_id}"
        self.announce(job_id, user, options, words)

    @contextmanager
    def _from(self, order: RestoreOrder, user: User, options: dict[str, Any]) -> Iterator[RestoreOrder]:
        """With its source. A file that was stored for nothing is removed again."""
        if options["file"] is None:
            yield replace(order, backup=_backup(user, options["source"]))
            return
        upload = self._stored(options["file"], order.database.user)
        try:
            yield replace(order, upload=upload)
        except BaseException:
            uploads.delete(upload, by=user)
            raise

    def _stored(self, path: Path, owner: User) -> Upload:
        """Where workers of any machine can read it."""
        try:
            with path.open("rb") as file:
                expected = path.stat().st_size
                self.remark(f"Storing {printable(str(path))} ({size(expected)}) …")
                return uploads.receive(owner, path.name, iter(partial(file.read, CHUNK_BYTES), b""), expected)
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror or error}") from error


def _backup(user: User, wanted: str) -> BackupJob:
    if wanted.startswith(LATEST):
        return _newest(user, wanted.removeprefix(LATEST))
    try:
        found = services.visible_to(user, BackupJob.objects.filter(id=UUID(wanted))).first()
    except ValueError:
        raise Refused(
            f"{wanted!r} is no id of a backup: list_jobs shows them. The newest one of a database is "
            f"{LATEST}NAME."
        ) from None
    if found is None:
        raise services.NotFound(f"No backup {wanted} is known: `list_jobs --queue backup` shows the newest.")
    return found


def _newest(user: User, name: str) -> BackupJob:
    """Of the user's own database of that name, else of any that the user may see. One that was deleted since
    has its backups still, under the name it had."""
    good = BackupJob.objects.filter(
        status=Status.COMPLETED, trashed_at=None, copies__state=CopyState.GOOD
    ).order_by("-completed_at")
    named = good.filter(Q(database__name=name) | Q(database=None, database_name=name))
    found = named.filter(user=user).first() or services.visible_to(user, named).first()
    if found is None:
        raise services.NotFound(f"There is no good backup of a database called {name!r}.")
    return found
