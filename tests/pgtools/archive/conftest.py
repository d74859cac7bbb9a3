"""The sample database dumped in every format, once for all tests of a file or more."""

from __future__ import annotations

import io
import subprocess
import tarfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from jobs.pgtools.archive.contents import Contents, inspect
from jobs.pgtools.archive.toc import Toc, parse_toc
from jobs.pgtools.conninfo import Conninfo
from tests import sample, servers
from tests.pgtools.conftest import Place, toolset


@dataclass(frozen=True)
class Dumps:
    """Of one database on one server; each is made when a test first asks for it."""

    place: Place

    @cached_property
    def custom(self) -> bytes:
        return self.place.dump({"format": "custom"})[0]

    @cached_property
    def toc(self) -> Toc:
        return parse_toc(io.BytesIO(self.custom).read)

    @cached_property
    def tar(self) -> bytes:
        return self.place.dump({"format": "tar"})[0]

    @cached_property
    def plain(self) -> bytes:
        return self.place.dump({"format": "plain", "compress": "none"})[0]

    @cached_property
    def directory(self) -> Path:
        self.place.dump({"format": "directory", "compress": "gzip:1"})
        (folder,) = self.place.folder.glob("d-*")
        return folder

    @cached_property
    def seekable(self) -> bytes:
        """A custom archive that was written into a file, which tells where data begin."""
        path = self.place.folder / "file.dump"
        tool = str(self.place.toolset.tool("pg_dump"))
        self.place.run([tool, "--format=custom", f"--file={path}"])
        return path.read_bytes()

    def tarred(self, *names: str, prefix: str = "") -> bytes:
        """The directory as a tar file, as Python packs it; its members in the order of `names`."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name in names or sorted(path.name for path in self.directory.iterdir()):
                tar.add(self.directory / name, arcname=prefix + name)
        return packed.getvalue()

    def restore_tool(self, *arguments: str) -> bytes:
        """What pg_restore prints; it needs no server for that."""
        argv = [str(self.place.toolset.tool("pg_restore")), *arguments]
        environment = self.place.toolset.environment()
        return subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True).stdout


MakeDumps = Callable[[int], Dumps]


@pytest.fixture(scope="session")
def dumps_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeDumps]:
    """Of the sample database on a major's server."""
    made: dict[int, Dumps] = {}

    def get(major: int) -> Dumps:
        if major not in made:
            server, name = servers.get(major), f"-Samplé \"'\\ {uuid.uuid4().hex[:8]}"
            url = sample.make(server, name)
            folder = tmp_path_factory.mktemp(f"dumps-{major}")
            place = Place(server, name, url, Conninfo.parse(url), toolset(major), folder)
            made[major] = Dumps(place)
        return made[major]

    yield get
    for dumps in made.values():
        dumps.place.server.drop_database(dumps.place.name)


@pytest.fixture(scope="session")
def dumps(dumps_of: MakeDumps) -> Dumps:
    """Of the sample database on the newest server that most tests use."""
    return dumps_of(17)


def contents_of(artifact: bytes, asked: list[int] | None = None) -> Contents:
    """Inspected as a store gives it: in small chunks from any offset; `asked` collects the offsets."""

    def read(start: int) -> Iterator[bytes]:
        if asked is not None:
            asked.append(start)
        for at in range(start, len(artifact), 7000):
            yield artifact[at : at + 7000]

    return inspect(read, len(artifact))
