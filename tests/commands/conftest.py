"""Running commands: in this process, or as a user would, in one of their own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.workers import CHECKOUT, database_url, process_environment


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Its stdout, which must be one JSON object a line and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]


Call = Callable[..., Said]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """`call("list_jobs", "--json", stdin="…")` in this process, in the test's transaction."""

    def run(name: str, *arguments: str, stdin: str = "") -> Said:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            call_command(name, *arguments, stdout=out, stderr=err)
        except CommandError as error:
            return Said(error.returncode, out.getvalue(), err.getvalue() + str(error))
        except SystemExit as end:
            return Said(int(end.code or 0), out.getvalue(), err.getvalue())
        return Said(0, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def manage(transactional_db: None) -> Call:
    """`manage("list_jobs", "--json", stdin="…", VARIABLE="…")`: `python manage.py …` on the test database."""

    def run(*arguments: str, stdin: str = "", **environment: Any) -> Said:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=process_environment(**environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def url(db: None) -> str:
    """Of a real database to back up: the test's own, whose role is no superuser."""
    return database_url()


@pytest.fixture
def shop(superuser: User, url: str) -> str:
    """The name of a registered database of the only superuser."""
    from jobs import databases

    return databases.register(superuser, "shop", url, by=superuser).name
