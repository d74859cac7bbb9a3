"""manage.py run"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from jobs.management.cli import PgbrCommand, Refused
from jobs.management.serve import Pair, address, taken


class Command(PgbrCommand):
    help = "The dashboard and one worker, until Ctrl-C: everything on one machine (`make run`)."

    def handle(self, **_: Any) -> None:
        host, port = address(settings.BASE_URL)
        if taken(host, port):
            raise Refused(
                f"{host}:{port} is taken, perhaps by another pgbr. End that, or choose another port with "
                f"BASE_URL=http://127.0.0.1:{port + 1}"
            )
        call_command("migrate", verbosity=0, interactive=False)
        with Pair(settings.BASE_DIR, f"{host}:{port}") as pair:
            if pair.answers(host, port):
                self._welcome()
            code = pair.wait()
        if settings.EMBEDDED_DATABASE:
            self.say("Stopped. The embedded database runs on: `python manage.py embedded_db stop` stops it.")
        raise SystemExit(code)

    def _welcome(self) -> None:
        self.say(f"\nDashboard: {settings.BASE_URL}")
        try:
            call_command("login_link", stdout=self.stdout, stderr=self.stderr)
        except CommandError as error:
            self.remark(str(error))
        self.say("Ctrl-C stops the dashboard and the worker.\n")
        self.stdout.flush()
