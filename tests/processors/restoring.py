"""An artifact back into a database, with the tools of the server's own major and nothing of pgbr's."""

from __future__ import annotations

import ctypes
import gzip
import io
import tarfile
from pathlib import Path

from jobs.pgtools import binaries, process
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.toolset import Toolset
from tests import servers

MOST_BYTES = 64 * 2**20


def toolset(major: int) -> Toolset:
    return binaries.install(major, servers.cache())


def restore(server: servers.TestServer, artifact: bytes, key: str, name: str, folder: Path) -> None:
    """Into a new database `name` of the application role's; raises ToolFailed at the first error."""
    conninfo = Conninfo.parse(server.create_database(name))
    load(toolset(server.major), conninfo, artifact, key, folder)


def load(tools: Toolset, conninfo: Conninfo, artifact: bytes, key: str, folder: Path) -> None:
    """`key` says by its ending what the artifact is; a tar without toc.dat's head is a directory's."""
    folder.mkdir()
    run(tools, conninfo, _command(tools, conninfo, artifact, key, folder), folder)


def run(tools: Toolset, conninfo: Conninfo, argv: list[str], folder: Path) -> None:
    environment = conninfo.environment(folder, "pgbr/restore") | tools.environment()
    with process.spawn(argv, environment, cwd=folder, stdout=False, secrets=conninfo.secrets) as child:
        child.check()


def _command(tools: Toolset, conninfo: Conninfo, artifact: bytes, key: str, folder: Path) -> list[str]:
    file = folder / "artifact"
    if ".sql" in key:
        file.write_bytes(_plain(artifact, key))
        return [str(tools.tool("psql")), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file)]
    pg_restore = [str(tools.tool("pg_restore")), "--exit-on-error", f"--dbname={_quoted(conninfo)}"]
    if key.endswith(".tar") and members(artifact)[0] != "toc.dat":
        with tarfile.open(fileobj=io.BytesIO(artifact)) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(file)  # noqa: S202  made by ourselves just now
        return [*pg_restore, "--jobs=2", str(file)]
    file.write_bytes(artifact)
    return [*pg_restore, str(file)]


def members(artifact: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(artifact)) as tar:
        return tar.getnames()


def _quoted(conninfo: Conninfo) -> str:
    escaped = conninfo.dbname.replace("\\", "\\\\").replace("'", "\\'")
    return f"dbname='{escaped}'"


def _plain(artifact: bytes, key: str) -> bytes:
    if key.endswith(".gz"):
        return gzip.decompress(artifact)
    return _unzstd(artifact) if key.endswith(".zst") else artifact


def _unzstd(packed: bytes) -> bytes:
    """With the library that pg_dump itself is linked to; Python has none of its own before 3.14."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    into = ctypes.create_string_buffer(MOST_BYTES)
    size = library.ZSTD_decompress(into, ctypes.c_size_t(MOST_BYTES), packed, ctypes.c_size_t(len(packed)))
    assert not library.ZSTD_isError(ctypes.c_size_t(size))
    return into.raw[:size]
