"""Artifacts of pgbr as people send them: compressed by hand, or a folder that somebody has put into a tar."""

from __future__ import annotations

import gzip
import io
import tarfile

import zstandard


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
