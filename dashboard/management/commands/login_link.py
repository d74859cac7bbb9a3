"""Print a one-time link that sets a password and logs in."""

from __future__ import annotations

import shlex
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.views.login_link import link_for
from jobs.admin.formats import duration

FIRST = "admin"


class Command(BaseCommand):
    help = (
        "Print a one-time link to log in with. On a new instance it is for the superuser `admin`, made if "
        "there is none yet; later, --user says whose password the link sets anew."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="NAME", help="whose password to set anew")

    def handle(self, *_: Any, **options: Any) -> None:
        user = _existing(options["user"]) if options["user"] else self._first()
        if user is not None:
            lasts = duration(settings.PASSWORD_RESET_TIMEOUT)
            self.stdout.write(link_for(user))
            self.stderr.write(f"Opens once, within {lasts}: set the password of {user.get_username()} there.")

    def _first(self) -> User | None:
        """The superuser that nobody has logged in as yet; None, having said so, once somebody has."""
        superusers = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
        claimed = [user.username for user in superusers if user.has_usable_password()]
        if not claimed:
            return superusers.first() or _made()
        self.stdout.write(
            f"Log in at {settings.BASE_URL}/admin/ as {' or '.join(claimed[:3])}. For a link that sets a new "
            f"password: manage.py login_link --user {shlex.quote(claimed[0])}"
        )
        return None


def _existing(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        known = ", ".join(User.objects.order_by("username").values_list("username", flat=True)[:10])
        raise CommandError(f"There is no user {name!r}. Known: {known or 'nobody yet'}.", returncode=2)
    if not user.is_active:
        raise CommandError(f"The account {name!r} is disabled: enable it at /admin/auth/user/.", returncode=2)
    return user


def _made() -> User:
    """Without a password nobody can log in but by the link."""
    if User.objects.filter(username=FIRST).exists():
        raise CommandError(
            f"There is no active superuser, and {FIRST!r} is the name of an ordinary or disabled account. "
            "Make one by name: manage.py createsuperuser",
            returncode=2,
        )
    return User.objects.create_superuser(FIRST, password=None)
