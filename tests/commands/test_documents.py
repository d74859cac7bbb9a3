"""What the documents list is what there is."""

from __future__ import annotations

import re
from pathlib import Path

from django.core.management import get_commands

from tests.workers import CHECKOUT

READERS = "text|secret|words|networks|url|integer|seconds|boolean|is_set"
READ = re.compile(rf"""\b(?:{READERS})\(\s*"([A-Z][A-Z0-9_]+)\"""")
OURS = ("jobs", "schedules", "dashboard")
# Reached through make, which the README explains.
THROUGH_MAKE = {"run", "demo"}


def test_env_example_lists_every_variable_that_is_read() -> None:
    sources = "".join(path.read_text() for path in (CHECKOUT / "pgbr").glob("*.py"))
    read = set(READ.findall(sources))
    listed = set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", (CHECKOUT / ".env.example").read_text(), re.MULTILINE))

    assert len(read) > 20
    assert read - listed == set()
    assert listed - read == {"POSTGRES_PASSWORD"}, "for compose.yaml alone"


def test_every_command_is_described() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    ours = {name for name, app in get_commands().items() if str(app) in OURS}

    assert "enqueue_backup" in ours
    assert {name for name in ours - THROUGH_MAKE if f"`{name}" not in page} == set()


def test_links_of_the_readme_lead_somewhere() -> None:
    readme = (CHECKOUT / "README.md").read_text()
    named = re.findall(r"\]\(([^)#:]+)\)|`((?:jobs|pgbr|docs)/[\w/.]+)`", readme)
    paths = [Path(link or name) for link, name in named]

    assert paths
    assert [path for path in paths if not (CHECKOUT / path).exists()] == []
