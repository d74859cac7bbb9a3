"""A database on a real server and a real dump of it: what the pages of restores and migrations look at."""

from __future__ import annotations

import os
import subprocess
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from jobs.models import BackupJob, Database, QueuedJob, RestoreJob
from jobs.processors.source import toolsets
from jobs.secrets import seal
from tests import sample, servers
from tests.admin.conftest import Belongings, stored_backup

MAJOR = 17
STATEMENTS = """
CREATE TABLE items (id int PRIMARY KEY, name text);
INSERT INTO items SELECT n, 'item ' || n FROM generate_series(1, 100) n;
CREATE INDEX items_name ON items (name);
CREATE VIEW dear AS SELECT * FROM items;
CREATE FUNCTION answer() RETURNS int LANGUAGE sql AS 'SELECT 42';
CREATE SCHEMA "Büro";
CREATE TABLE "Büro"."sel""ect.*" (id int);
CREATE TABLE "Büro"."<b>bold</b>" (id int);
"""


@dataclass(frozen=True)
class Shop:
    """ada's database `name` on a real server, and a stored backup of it."""

    owner: Belongings
    server: servers.TestServer
    name: str
    database: Database
    backup: BackupJob

    @property
    def client(self) -> Client:
        return self.owner.client

    @property
    def user(self) -> User:
        return self.owner.user

    @property
    def url(self) -> str:
        return self.server.superuser_url(self.name)

    @property
    def restore(self) -> str:
        return f"/admin/jobs/backupjob/{self.backup.pk}/restore/"

    @property
    def contents(self) -> str:
        return f"/admin/jobs/backupjob/{self.backup.pk}/contents/"

    def jobs(self, queue: str = "restore") -> list[QueuedJob]:
        return list(QueuedJob.objects.filter(queue=queue).order_by("created_at"))

    def restored(self, **columns: Any) -> RestoreJob:
        """A restore of this backup as its history has it."""
        usual = {"status": "completed", "mode": "replace", "target_name": self.name}
        return RestoreJob.objects.create(
            user=self.user, database=self.database, database_name=self.database.name, backup=self.backup,
            **usual | columns,
        )  # fmt: skip


def make(owner: Belongings) -> Shop:
    server, name = servers.get(MAJOR), _made()
    database = Database.objects.create(
        user=owner.user, name="real shop", sealed_url=seal(server.superuser_url(name))
    )
    backup = stored_backup(database, owner.storage, dumped())
    return Shop(owner, server, name, database, backup)


@cache
def _made() -> str:
    """Made once for the process; nothing writes into it."""
    name = f"admin {uuid.uuid4().hex[:8]}"
    sample.make(servers.get(MAJOR), name, STATEMENTS)
    return name


@cache
def dumped() -> bytes:
    tools = next(tools for tools in toolsets() if tools.major == MAJOR)
    command = [str(tools.tool("pg_dump")), "--format=custom", servers.get(MAJOR).superuser_url(_made())]
    environment = {"PATH": os.defpath} | tools.environment()
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout
