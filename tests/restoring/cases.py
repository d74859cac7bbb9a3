"""What has to come back the same whatever the versions, the format and the way; and how that is told."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from jobs.models import BackupJob, Database, MigrationJob, RestoreJob
from jobs.processors import staging
from jobs.restoring import MigrationOrder
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring import packing
from tests.restoring.conftest import Restores, database_facts, stray

Samples = Callable[[int], Source]
# What the server says of itself while SQL is run, such as that wal_level does not do for publications.
OF_SERVER = re.compile(r"^line \d+: WARNING: ")


@dataclass(frozen=True)
class Case:
    """A backup with the flags `dump`, restored with `mode` and `flags`. `packed`: its artifact is made into
    something else (see `packing`) and uploaded first. `migration`: "", "stream" or "staged", without a
    backup."""

    source: int
    target: int
    dump: Mapping[str, Any] = field(default_factory=dict)
    packed: str = ""
    mode: str = "new"
    flags: Mapping[str, Any] = field(default_factory=dict)
    migration: str = ""

    @property
    def format(self) -> str:
        if self.migration:
            return "migration"
        return self.packed or str(self.dump.get("format", "custom"))

    @property
    def codec(self) -> str:
        return str(self.dump.get("compress", "" if self.migration else "as chosen"))

    def __str__(self) -> str:
        given = [*self.flags.items(), *(() if self.mode == "new" else [("mode", self.mode)])]
        words = [self.format, self.codec.partition(":")[0], self.migration, *(f"{k}={v}" for k, v in given)]
        return f"{self.source}-{self.target} " + " ".join(word for word in words if word)


@dataclass(frozen=True)
class Result:
    """`way` as it went; `differences` name what is not as it should be, [] when all is."""

    case: Case
    way: str
    rows: bool
    definitions: bool
    seconds: float
    differences: list[str]


PAIRS = [Case(one, other) for one in servers.MAJORS for other in servers.MAJORS if one <= other]
MANY = {"jobs": 2}
CUSTOM = [
    Case(17, 17, {"format": "custom", "compress": codec}, mode=mode, flags=flags)
    for codec in ("none", "gzip:6", "lz4", "zstd:3")
    for mode, flags in (("new", {"jobs": 1}), ("new", MANY), ("empty", {}))
]
DIRECTORY = [
    Case(17, 17, {"format": "directory", "jobs": 2, "compress": codec}, flags={"jobs": jobs})
    for codec in ("none", "gzip:6", "lz4", "zstd:3")
    for jobs in (1, 2)
]
OTHERS = [
    Case(17, 17, {"format": "tar"}),
    Case(17, 17, {"format": "tar"}, mode="empty"),
    *(
        Case(17, 17, {"format": "plain", "compress": codec}, mode=mode)
        for codec in ("none", "gzip:6", "zstd:3")
        for mode in ("new", "empty")
    ),
    Case(17, 17, {"format": "plain", "inserts": True, "rows_per_insert": 7}),
    Case(17, 17, {"format": "custom"}, mode="replace"),
]
UPLOADS = [
    Case(17, 17, {"format": dumped, "compress": codec}, packed=packed, mode=mode, flags=flags)
    for packed, dumped, codec, mode, flags in (
        (".dump", "custom", "zstd:3", "new", {}),
        (".dump.gz", "custom", "none", "new", MANY),
        (".dump.zst", "custom", "none", "new", {"jobs": 1}),
        ("folder.tar", "directory", "zstd:3", "new", MANY),
        ("folder.tar.gz", "directory", "none", "new", MANY),
        ("folder.tar.zst", "directory", "lz4", "new", {}),
        (".tar.gz", "tar", "none", "new", {}),
        # Plain SQL does not say whose the database is.
        (".sql", "plain", "none", "empty", {}),
        (".sql.gz", "plain", "none", "empty", {"single_transaction": False}),
        (".sql.zst", "plain", "none", "empty", {}),
    )
]
MIGRATIONS = [
    Case(one, other, migration=way, mode=mode)
    for one, other in ((14, 18), (16, 17), (17, 17))
    for way, mode in (("stream", "new"), ("staged", "new"), ("stream", "empty"))
]
ALL = [*PAIRS, *CUSTOM, *DIRECTORY, *OTHERS, *UPLOADS, *MIGRATIONS]
# A few that go ways of their own, for every run of the tests.
SOME = [
    Case(14, 18),
    Case(16, 17),
    Case(17, 17, {"format": "directory", "jobs": 2, "compress": "lz4"}, flags=MANY),
    Case(17, 17, {"format": "tar"}, mode="empty"),
    Case(17, 17, {"format": "custom", "compress": "none"}, packed=".dump.zst", flags={"jobs": 1}),
    Case(17, 17, {"format": "directory", "compress": "none"}, packed="folder.tar.gz", flags=MANY),
    Case(17, 17, {"format": "plain", "compress": "none"}, packed=".sql.zst", mode="empty"),
    Case(14, 18, migration="staged"),
]


class Comparison:
    """Runs cases. `samples` gives the sample database of a major, which is the source, and tells what its
    definitions look like in a database of the target's major."""

    def __init__(self, restores: Restores, samples: Samples) -> None:
        self.restores = restores
        self.samples = samples
        self._backups: dict[str, BackupJob] = {}
        self._rows: dict[int, dict[str, Any]] = {}
        self._definitions: dict[int, dict[Any, Any]] = {}

    def run(self, case: Case) -> Result:
        server, name = servers.get(case.target), self.restores.name()
        self.samples(case.target)  # its server gets the roles that the sample needs
        source = None if case.migration else self._source(case)
        if case.mode != "new":
            self.restores.target(server, "" if case.mode == "empty" else "CREATE TABLE old ()", name)
        target = self.restores.at(server, name)
        begun = time.monotonic()
        with patch("jobs.processors.restore.stage", wraps=staging.stage) as stage:
            row = self._restore(case, source, target, name)
        seconds = time.monotonic() - begun
        found = self._differences(case, row, server, name)
        way = case.migration or ("staged" if stage.called else "stream")
        server.drop_database(name)
        return Result(
            case,
            ", ".join([way, case.mode, *(f"{key} {value}" for key, value in case.flags.items())]),
            not found[0] and not found[2],
            not found[1] and not found[2],
            seconds,
            [*found[2], *found[0], *found[1]],
        )

    def _source(self, case: Case) -> Any:
        key = json.dumps([case.source, case.dump], sort_keys=True)
        if key not in self._backups:
            row = self.restores.backups.take(self.samples(case.source).url, case.dump)
            assert row.status == "completed", row.error
            self._backups[key] = row
        backup = self._backups[key]
        if not case.packed:
            return backup
        content = packing.packed(self.restores.backups.artifact(backup), case.packed)
        return self.restores.upload(content, f"export{case.packed}")

    def _restore(self, case: Case, source: Any, target: Database, name: str) -> RestoreJob | MigrationJob:
        if not case.migration:
            return self.restores.take(target, source, case.mode, name, case.flags)
        staged = case.migration == "staged"
        order = MigrationOrder(self.samples(case.source).url, target, case.mode, name, staged=staged)
        return self.restores.migrate(order)

    def _differences(
        self, case: Case, row: RestoreJob | MigrationJob, server: servers.TestServer, name: str
    ) -> tuple[list[str], list[str], list[str]]:
        """In the rows, in the definitions, and in what the job says of itself."""
        if row.status != "completed":
            return [], [], [f"{row.status}: {row.error}"]
        said = [str(warning) for warning in row.warnings if not OF_SERVER.search(str(warning))]
        said += [f"left behind: {left}" for left in stray(server)]
        said += [f"left behind: {left}" for left in self.restores.backups.scratch()]
        rows, definitions = self._expected(case)
        found = _comparable(case, sample.definitions(server, name))
        source = self.samples(case.source)
        if case.mode in ("new", "replace"):
            definitions["database"] = _settled(database_facts(source.server, source.name))
            found["database"] = _settled(database_facts(server, name))
        return _differing(rows, sample.rows(server, name)), _differing(definitions, found), said

    def _expected(self, case: Case) -> tuple[dict[str, Any], dict[Any, Any]]:
        source, like = self.samples(case.source), self.samples(case.target)
        if case.source not in self._rows:
            self._rows[case.source] = sample.rows(source.server, source.name)
        if case.target not in self._definitions:
            self._definitions[case.target] = sample.definitions(like.server, like.name)
        return self._rows[case.source], _comparable(case, self._definitions[case.target])


def _comparable(case: Case, definitions: Mapping[Any, Any]) -> dict[Any, Any]:
    """Without what versions make different: since 18 a NOT NULL has a name, which older dumps do not tell;
    and pg_dump of 15 and later carries over that everybody could create in the schema public before."""
    left_out = {key for key, text in definitions.items() if str(text).startswith("NOT NULL ")}
    left_out |= {("schema", "public")} if case.migration and case.source < 15 <= case.target else set()
    same = case.source == case.target
    return {key: text for key, text in definitions.items() if same or key not in left_out}


def _settled(facts: Sequence[Any]) -> list[Any]:
    """What comes from a manifest is set in its order, and the server spells lists out."""
    *others, settings = facts
    return [*others, sorted(setting.replace("German, DMY", "German") for setting in settings or ())]


def _differing(expected: Mapping[Any, Any], found: Mapping[Any, Any]) -> list[str]:
    keys = sorted({key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)})
    return [f"{key}: {found.get(key, 'missing')} instead of {expected.get(key, 'nothing')}" for key in keys]
