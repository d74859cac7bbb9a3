"""One folder of PostgreSQL client tools: does it work, which version is it, what can it compress with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import NoClientTools

TOOLS = ("pg_dump", "pg_dumpall", "pg_restore", "psql")
PROBE_SECONDS = 20

_found: dict[tuple[str, int], Toolset] = {}


@dataclass(frozen=True)
class Toolset:
    """One folder with the client tools of one PostgreSQL version.

    `version` is (major, minor). `library_path` is set when the folder brings its own libpq.
    `compressors` are the codecs of pg_dump's --compress these tools were built with, by their names there.
    """

    major: int
    version: tuple[int, int]
    bin: Path
    library_path: Path | None
    compressors: frozenset[str]

    def tool(self, name: str) -> Path:
        """The path of a tool, e.g. "pg_dump"."""
        return self.bin / name

    def environment(self) -> dict[str, str]:
        """What a child needs beside its own settings to load these tools."""
        return _library_environment(self.library_path)

    @property
    def label(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"


def probe(folder: Path) -> Toolset:
    """Ask the tools in `folder` for their version and codecs; raises NoClientTools saying what is wrong.

    The answer is kept per process until the file changes.
    """
    for name in TOOLS:
        _check_tool(folder / name)
    pg_dump = folder / "pg_dump"
    key = (str(pg_dump), pg_dump.stat().st_mtime_ns)
    if key not in _found:
        _found[key] = _ask(folder)
    return _found[key]


def _check_tool(path: Path) -> None:
    if not os.access(path, os.X_OK):
        raise NoClientTools(f"{path} is missing or not executable.")
    if path.resolve().name == "pg_wrapper":
        # Debian's wrapper picks a version by the caller's HOME and the local clusters, not by the server.
        raise NoClientTools(f"{path} is Debian's wrapper, not the tool; use /usr/lib/postgresql/*/bin.")


def _ask(folder: Path) -> Toolset:
    library_path = _own_libraries(folder)
    pg_dump = folder / "pg_dump"
    answer = _run([str(pg_dump), "--version"], library_path)
    match = re.search(r"^pg_dump \([^)]*\) (\d+)(?:\.(\d+))?", answer.stdout)
    if answer.returncode != 0 or match is None:
        reason = (answer.stderr or answer.stdout).strip().splitlines()
        raise NoClientTools(f"{pg_dump} does not run: {reason[-1] if reason else 'no answer'}")
    version = (int(match[1]), int(match[2] or 0))
    return Toolset(version[0], version, folder, library_path, _compressors(pg_dump, version[0], library_path))


def _compressors(pg_dump: Path, major: int, library_path: Path | None) -> frozenset[str]:
    """The codecs pg_dump was built with.

    A level beyond every range is refused before pg_dump connects: a build with the codec complains of the
    level, one without it of the codec. Before 16 there was gzip only, and 14 ignores what it cannot parse.
    """
    if major < 16:
        return frozenset({"none", "gzip"})
    codecs = {"none"}
    for codec in ("gzip", "lz4", "zstd"):
        command = [str(pg_dump), f"--compress={codec}:99", "--format=custom", "--host=/nonexistent", "-w"]
        if "expects a compression level" in _run(command, library_path).stderr:
            codecs.add(codec)
    return frozenset(codecs)


def _run(command: list[str], library_path: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "LC_ALL": "C", **_library_environment(library_path)}
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoClientTools(f"{command[0]} does not run: {error}") from error


def _own_libraries(folder: Path) -> Path | None:
    lib = folder.parent / "lib"
    return lib if any(lib.glob("libpq.so*")) or any(lib.glob("libpq.*dylib")) else None


def _library_environment(library_path: Path | None) -> dict[str, str]:
    if library_path is None:
        return {}
    name = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
    return {name: str(library_path)}
