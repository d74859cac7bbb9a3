"""Dumps as people send them: made or compressed by hand, or a folder that somebody has put into a tar."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from pathlib import Path

import zstandard

from jobs.pgtools.conninfo import Conninfo
from tests.processors.conftest import Source
from tests.processors.restoring import toolset


def packed(artifact: bytes, how: str) -> bytes:
    """`how` ends as the file's name would; "folder…" puts the members of a tar into a folder of it first."""
    content = _in_folder(artifact) if how.startswith("folder") else artifact
    if how.endswith(".gz"):
        return gzip.compress(content, 1)
    return zstandard.compress(content, 1) if how.endswith(".zst") else content


def _in_folder(artifact: bytes) -> bytes:
    """As `tar c ./export` does it: with an entry for the folder, and names that begin with a dot."""
    into = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(artifact)) as old, tarfile.open(fileobj=into, mode="w") as new:
        folder = tarfile.TarInfo("./export")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        new.addfile(folder)
        for member in old:
            member.name = f"./export/{member.name}"
            new.addfile(member, old.extractfile(member))
    return into.getvalue()


def dumped(major: int, source: Source, path: Path, *options: str) -> bytes:
    """By hand, with pg_dump of a major of one's choice."""
    tools, conninfo = toolset(major), Conninfo.parse(source.url)
    file = path / "dump"
    argv = [str(tools.tool("pg_dump")), *options, f"--file={file}"]
    environment = conninfo.environment(path, "by hand") | tools.environment()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    return file.read_bytes()
