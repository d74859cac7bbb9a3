"""What the commands share: whose objects they touch, what they print, how they end.

Exit codes: 0 done, 1 a job failed or was cancelled, 2 usage, an unknown name or a refusal. With --json
nothing but JSON goes to stdout, one object a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser, SystemCheckError
from django.db.utils import OperationalError, ProgrammingError

from jobs.crypto import CannotDecrypt
from jobs.management import listing
from jobs.management.follow import follow
from jobs.management.listing import JobView
from jobs.management.text import printable
from jobs.pgtools.errors import PgToolsError
from jobs.services import NotFound, ServiceError
from jobs.storage.base import StoreError

REFUSED = 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # as a shell reports SIGINT and SIGPIPE
NO_SUCH_TABLE = "42P01"


class Refused(CommandError):
    """Nothing was done; the message says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message), returncode=REFUSED)


class PgbrCommand(BaseCommand):
    """A command whose refusals end with exit code 2 and one line on stderr."""

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        try:
            return super().execute(*arguments, **options)
        except (ServiceError, PgToolsError, StoreError, CannotDecrypt) as error:
            raise Refused(str(error)) from error
        except SystemCheckError as error:
            error.returncode = REFUSED
            raise
        except (OperationalError, ProgrammingError) as error:
            raise _of_our_database(error) from error
        except BrokenPipeError:
            # Whoever reads has seen enough (`| head`); nor shall the last flush of stdout complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(PIPE_CLOSED) from None

    def say(self, line: str) -> None:
        self.stdout.write(line)

    def remark(self, line: str) -> None:
        """Something for people, which never goes where JSON is expected."""
        self.stderr.write(line, self.style.WARNING)

    def emit(self, value: Mapping[str, Any]) -> None:
        self.stdout.write(json.dumps(value, default=str, ensure_ascii=False))


class JobCommand(PgbrCommand):
    """A command about a job, which it may wait for."""

    def add_arguments(self, parser: CommandParser) -> None:
        add_user(parser)
        add_json(parser)
        parser.add_argument("--wait", action="store_true", help="wait until the job has ended, and say how")

    def announce(self, job_id: UUID, user: User, options: Mapping[str, Any], words: str) -> None:
        """Say that the job is queued, or wait for its end and leave with its exit code."""
        if not options["json"]:
            self.say(words)
        view = self.wait_for(job_id, user, options) if options["wait"] else listing.find(user, job_id)
        self.report(view, options)

    def wait_for(self, job_id: UUID, user: User, options: Mapping[str, Any]) -> JobView:
        quiet = options["verbosity"] == 0
        try:
            return follow(job_id, user, self.stderr, terminal=self.stderr.isatty(), quiet=quiet)
        except KeyboardInterrupt:
            self.remark(f"Not waited for any longer. The job goes on: `cancel_job {job_id}` ends it.")
            raise SystemExit(INTERRUPTED) from None

    def report(self, view: JobView, options: Mapping[str, Any]) -> None:
        """Print the job as it stands. A job that ended otherwise than well ends the command with 1."""
        if options["json"]:
            self.emit(view.as_dict())
        elif options["wait"]:
            self.say(view.verdict())
        elif not listing.worker_is_alive(view.queue):
            self.remark(listing.no_worker(view.queue))
        if view.ended and view.status != "completed":
            raise SystemExit(1)


def add_user(parser: CommandParser) -> None:
    parser.add_argument("--user", metavar="U", help="on whose behalf (default: the only superuser)")


def add_json(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line, and nothing else")


def add_consent(parser: CommandParser) -> None:
    parser.add_argument(
        "--yes", action="store_true", help="go on without asking, whatever is replaced or lost"
    )


def require_consent(command: PgbrCommand, options: Mapping[str, Any], what: str, name: str) -> None:
    """--yes, or the name typed on a terminal. `what` says in a clause what will be. Raises `Refused`."""
    if options["yes"]:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{what}: say --yes if that is meant.")
    command.stderr.write(f"{printable(what)}. Type {printable(name)} to go on: ", ending="")
    command.stderr.flush()
    if sys.stdin.readline().rstrip("\n") != name:
        raise Refused(f"That was not {name}: nothing was done.")


def acting_user(name: str | None) -> User:
    """The account called `name`, or the only superuser. Raises `NotFound` or `Refused`."""
    if name:
        found = User.objects.filter(username=name).first()
        if found is None:
            raise NotFound(f"No user is called {name!r}.")
        return found
    superusers = User.objects.filter(is_superuser=True, is_active=True).order_by("username")[:10]
    if len(superusers) == 1:
        return superusers[0]
    if superusers:
        names = ", ".join(user.username for user in superusers)
        raise Refused(f"There are several superusers ({names}): say which one with --user NAME.")
    raise Refused("There is no superuser yet: `make run` prints a link that makes one, or name a --user.")


def _of_our_database(error: Exception) -> Refused:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if getattr(error.__cause__, "sqlstate", None) == NO_SUCH_TABLE:
        return Refused("pgbr's own database lacks its tables: run `python manage.py migrate` first.")
    return Refused(f"pgbr's own database gave an error: {reason}. `python manage.py doctor` tells more.")
