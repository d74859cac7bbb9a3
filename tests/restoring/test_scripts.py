r"""Plain SQL that somebody sends: commands of psql do nothing but fail the job, and dumps that only look as
if they held some restore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.pgtools.restore_options import PRESETS
from tests import sample, servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Failing, Restores, completed, databases, number
from tests.restoring.packing import dumped

pytestmark = pytest.mark.django_db(transaction=True)

HEAD = r"""--
-- PostgreSQL database dump
--

\restrict abcDEF123

SET standard_conforming_strings = on;
CREATE TABLE t (a text);
INSERT INTO t VALUES ('one');
"""
LINE = HEAD.count("\n") + 1
# What hides the command, and the command, which is on the line after it.
HIDDEN = {
    "a shell": ("", r"\! touch {sentinel}"),
    "output to a program, after quotes": (
        r"""SELECT 'it''s \! no', E'\'\\', U&'\\' AS "\! ' no";""" + "\n",
        r"\o |touch {sentinel}",
    ),
    "a program for copy, after dollar quotes": (
        "SELECT $a$ \\! no $b$ ' $a$;\n",
        r"\copy t to program 'touch {sentinel}'",
    ),
    "a query to a program, after comments": (
        "/* /* \\! ' */ \\! no */ -- \\! no '\n",
        r"SELECT 1 \g |touch {sentinel}",
    ),
    "a file of the worker's, after data": ("COPY t FROM stdin;\n\\\\! no\n'\n\\.\n", r"\i {secret}"),
    "backquotes, after the file's own unrestrict": (
        "\\unrestrict abcDEF123\n",
        r"\set x `touch {sentinel}`",
    ),
    "a large object from a file": ("BEGIN;\n", r"\lo_import {secret}"),
    "another server": ("SELECT 1;\n", r"\connect host=127.0.0.1 port=1 dbname=x"),
    "a file of the server's": ("", "COPY t TO '{sentinel}';"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where commands would leave something, open to the server's account as well."""
    made = tmp_path / "worker"
    made.mkdir()
    made.chmod(0o777)
    (made / "secret").write_text("the worker's own")
    return made


def attack(folder: Path, before: str, command: str, end: str = "\n") -> bytes:
    filled = command.format(sentinel=folder / "sentinel", secret=folder / "secret")
    script = f"{HEAD}{before}{filled}\nINSERT INTO t VALUES ('two');\n\\unrestrict abcDEF123\n"
    return script.replace("\n", end).encode()


def test_a_command_fails_the_job_and_does_nothing_else(failing: Failing, folder: Path) -> None:
    name = failing.target("existing")
    for before, command in HIDDEN.values():
        upload = failing.restores.upload(attack(folder, before, command), "shop.sql")
        line = LINE + before.count("\n")
        failing.take(upload, "existing", {}, f"Line {line}: ", "as it was", name=name, user=servers.SUPERUSER)
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"secret": "the worker's own"}


def test_lines_that_end_as_elsewhere_hide_nothing(failing: Failing, folder: Path) -> None:
    """Nor does it help to have accepted errors."""
    for end, line in (("\r", 1), ("\r\n", LINE)):
        upload = failing.restores.upload(attack(folder, "", r"\! touch {sentinel}", end), "shop.sql")
        failing.take(upload, "new", {"accept_errors": True}, f"Line {line}: ", user=servers.SUPERUSER)
        assert [path.name for path in folder.iterdir()] == ["secret"]


LOOKS = r"""CREATE TABLE looks (id int PRIMARY KEY, t text, "\! col" text DEFAULT '\! touch x');
INSERT INTO looks VALUES (1, '\! touch x'), (2, E'\\.'), (3, E'\\.\n\\! touch x\n'), (4, E'a\rb\r\n\\q'),
    (5, '\copy'), (6, E'''\n\\i /etc/passwd\n'), (7, ''), (8, '$a$ \g |x'), (9, '--'), (10, '/* \!');
COMMENT ON TABLE looks IS E'first\n\\! touch x\nlast';
CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $body$ SELECT '\! touch x
\o |x
' $body$;
CREATE FUNCTION g(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC
    SELECT CASE n WHEN 1 THEN 2 END; SELECT 3; END"""


@pytest.fixture(scope="module")
def source(make_source: Callable[..., Source]) -> Source:
    return make_source(17, LOOKS, '-"Looks" like \\! \'x=')


@pytest.mark.parametrize(
    ("options", "mode"),
    [(["--create"], "empty"), (["--create", "--clean", "--if-exists", "--inserts"], "replace")],
    ids=str,
)
def test_a_harmless_dump_restores(
    restores: Restores, source: Source, tmp_path: Path, options: list[str], mode: str
) -> None:
    r"""With \restrict, with the \connect of --create, with rows and texts that look like commands."""
    content = dumped(17, source, tmp_path, "--format=plain", *options)
    assert b"\\restrict" in content
    assert b"\\connect" in content
    name = restores.target(source.server, "" if mode == "empty" else "CREATE TABLE old ()")
    upload = restores.upload(content, "shop.sql")
    completed(restores.take(restores.at(source.server, name), upload, mode, name))
    assert sample.rows(source.server, name) == sample.rows(source.server, source.name)
    assert sample.definitions(source.server, name) == sample.definitions(source.server, source.name)
    assert source.name in databases(source.server)


def test_a_dump_of_strangers_restores_without_them(restores: Restores) -> None:
    """Owners, grants and comments on extensions are left out of SQL too."""
    foreign = b"""CREATE EXTENSION citext; COMMENT ON EXTENSION citext IS 'theirs';
        CREATE TABLE t (a text); ALTER TABLE public.t OWNER TO "some one"; GRANT SELECT ON t TO nobody;
        COPY t FROM stdin;\nALTER TABLE t OWNER TO nobody;\n\\.\n"""
    server, name = servers.get(17), restores.name()
    upload, at = restores.upload(foreign, "theirs.sql"), restores.at(server, name)
    row = restores.take(at, upload, "new", name)
    assert (row.status, "without owners" in (row.error or "")) == ("failed", True), row.error
    completed(restores.take(at, upload, "new", name, PRESETS["managed"]))
    assert number(server, name, "SELECT a FROM t") == "ALTER TABLE t OWNER TO nobody;"
    assert number(server, name, "SELECT tableowner FROM pg_tables WHERE tablename = 't'") == servers.RESTORER


def test_errors_that_nobody_accepted_fail_the_job_that_went_on_after_them(failing: Failing) -> None:
    upload = failing.restores.upload(
        b"CREATE TABLE a (n int); CREATE TABLE a (); SELECT x; CREATE TABLE b ();"
    )
    row = failing.take(upload, "new", {"exit_on_error": False}, "2 statements failed", '"a" already exists')
    assert "SELECT x" in " ".join(row.warnings)
