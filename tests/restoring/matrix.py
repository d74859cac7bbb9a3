"""`python -m tests.restoring.matrix`: every case of `cases.ALL`, as a table in Markdown. Exits 1 on any
difference.

Importing this starts the embedded database in a temporary folder, and has to come before Django's settings
are read. All of it is gone when the process ends.
"""

# ruff: noqa: E402 - the settings need the database that has just been started

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tests.environment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgbr.settings")

import django

django.setup()

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command

from tests import sample, servers
from tests.processors.conftest import Backups, Source
from tests.processors.restoring import toolset
from tests.restoring.cases import ALL, Comparison, Result
from tests.restoring.conftest import Restores

HEADER = (
    "| from | to | format | codec | way | rows | definitions | seconds |\n|---|---|---|---|---|---|---|---|"
)


def samples() -> dict[int, Source]:
    made = {}
    for major in servers.MAJORS:
        server = servers.get(major)
        made[major] = Source(server, "-Samplé \"'\\", sample.make(server, "-Samplé \"'\\"))
    return made


@contextmanager
def house() -> Iterator[Restores]:
    call_command("migrate", verbosity=0)
    with tempfile.TemporaryDirectory(dir=tests.environment.HOME) as root:
        settings.PGBR_PG_BIN = [str(toolset(major).bin) for major in servers.MAJORS]
        settings.BACKUP_FOLDER, settings.SCRATCH_FOLDER = Path(root, "backups"), Path(root, "scratch")
        yield Restores(Backups(User.objects.create_superuser("matrix"), Path(root)))


def line(result: Result) -> str:
    case, says = result.case, {True: "equal", False: "DIFFERENT"}
    cells = [case.source, case.target, case.format, case.codec, result.way]
    return f"| {' | '.join(map(str, cells))} | {says[result.rows]} | {says[result.definitions]} " + (
        f"| {result.seconds:.1f} |"
    )


def main() -> int:
    logging.disable(logging.INFO)
    wrong: list[str] = []
    with house() as restores:
        comparison = Comparison(restores, samples().__getitem__)
        print(HEADER)
        for case in ALL:
            result = comparison.run(case)
            print(line(result), flush=True)
            wrong += [f"{case}: {difference}" for difference in result.differences]
    print(f"\n{len(ALL)} cases, {len(wrong)} differences", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
