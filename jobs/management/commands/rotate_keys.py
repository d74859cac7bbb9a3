"""manage.py rotate_keys"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from jobs.crypto import CannotDecrypt
from jobs.resealing import reseal_all


class Command(BaseCommand):
    help = (
        "Encrypt all stored secrets with the first key of ENCRYPTION_KEY, so that the others can be dropped."
    )

    def handle(self, **_: Any) -> None:
        try:
            count = reseal_all()
        except CannotDecrypt as error:
            self.stderr.write(f"Nothing was changed. {error}")
            sys.exit(1)
        self.stdout.write(
            f"{count} rows are encrypted with the first key now; the other keys can be dropped."
        )
