r"""A script that would run programs or touch files through psql does nothing but fail, naming the line.

In the cases SENTINEL stands for a file that must not appear, and the last backslash but those of \. is on the
line that must be named.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.pgtools.script.errors import ScriptError

from .conftest import Target

COMMANDS = [
    r"\! touch SENTINEL",
    r"\!touch SENTINEL",
    r"SELECT 1 \! touch SENTINEL",
    r"\o |touch SENTINEL",
    r"\o SENTINEL",
    r"\out SENTINEL",
    r"SELECT 1 \g |touch SENTINEL",
    r"SELECT 1 \g SENTINEL",
    r"SELECT 1 \gx SENTINEL",
    r"SELECT 'SELECT 1' \gexec",
    r"SELECT 'touch SENTINEL' AS command \gset",
    r"SELECT 1 \gdesc",
    r"SELECT 1 \crosstabview",
    r"SELECT 1 \watch 1",
    r"SELECT $1 \bind 1 \g |touch SENTINEL",
    r"SELECT 1 \parse named",
    r"\startpipeline",
    r"\copy made FROM PROGRAM 'touch SENTINEL'",
    r"\copy made TO PROGRAM 'touch SENTINEL'",
    r"\copy made TO SENTINEL",
    r"\copy made FROM SENTINEL",
    r"\i SENTINEL",
    r"\ir SENTINEL",
    r"\include SENTINEL",
    r"\include_relative SENTINEL",
    r"\w SENTINEL",
    r"\w |touch SENTINEL",
    r"\write SENTINEL",
    r"\e SENTINEL",
    r"\edit SENTINEL",
    r"\ef",
    r"\ev",
    r"\s SENTINEL",
    r"\set ECHO all",
    r"\set x `touch SENTINEL`",
    r"\echo `touch SENTINEL`",
    r"\qecho `touch SENTINEL`",
    r"\warn `touch SENTINEL`",
    r"\if `touch SENTINEL`",
    r"\prompt 'password' x",
    r"\password",
    r"\setenv PAGER 'touch SENTINEL'",
    r"\pset pager 'touch SENTINEL'",
    r"\cd /",
    r"\lo_import SENTINEL",
    r"\lo_export 1 SENTINEL",
    r"\encoding LATIN1",
    r"\encoding SQL_ASCII `touch SENTINEL`",
    r"\timing",
    r"\d",
    r"\p",
    r"\r",
    r"\q",
    r"\?",
    "\\",
    r"\connect `touch SENTINEL`",
    r"\connect other - example.org",
    r"\connect -reuse-previous=on ""\"dbname='other' host='example.org'\"",
    r"\connect host=example.org",
    r"\c postgresql://example.org/other",
    '\\c "host=example.org"',
    "\\connect :x",
    "\\connect - postgres",
]  # fmt: skip
HIDDEN = {
    "after a string with a backslash": "SELECT 'a\\';\n\\! touch SENTINEL\n SELECT '';",
    "after a string with quotes": "SELECT 'it''s', E'a\\'b', '--', '/*', '$$'; \\! touch SENTINEL\n",
    "after an escaped backslash": "SELECT E'\\\\'; \\! touch SENTINEL # '\n",
    "after a string that goes on": "SELECT E'a'\r'\\'' ; \\! touch SENTINEL\n--'\n",
    "after a string without escapes": "SELECT B'1', X'f', N'\\', U&'\\0061' ; \\! touch SENTINEL\n",
    "after strings with escapes": (
        "SET standard_conforming_strings = off;\nSELECT 'a\\'; b';\n\\! touch SENTINEL\n--'\n"
    ),
    "after escapes are off again": (
        "SET standard_conforming_strings = off; SET standard_conforming_strings = on;\nSELECT 'a\\';\n"
        "\\! touch SENTINEL\n SELECT '';"
    ),
    "after escapes were turned on by a function": (
        "SELECT set_config('standard_conforming_strings', 'off', false);\n"
        "SELECT '\\''; \\! touch SENTINEL\n--';\n"
    ),
    "after a quoted name": 'SELECT 1 AS "a\\", 2 AS "b""c"; \\! touch SENTINEL\n',
    "after dollar quotes": "SELECT $a$ $b$ ' $ab$a$, $$\\$$; \\! touch SENTINEL\n SELECT $a$ $a$;",
    "after a name that looks like a dollar quote": "SELECT 1 AS a$b$; \\! touch SENTINEL\n SELECT 1 AS c$b$;",
    "after a comment in a comment": "/* /* */ ' */ \\! touch SENTINEL\n/* */",
    "after a comment that opens nothing": "-- /* '\n\\! touch SENTINEL\n-- */ '\n",
    "after a comment and a carriage return": "-- comment\r\\! touch SENTINEL\n",
    "after an operator and a comment": "SELECT 1 +-- '\n2 ; \\! touch SENTINEL\n--'\n",
    "between carriage returns": "SELECT 1;\r\\! touch SENTINEL",
    "after a byte order mark": "\ufeff\\! touch SENTINEL\n",
    "in parentheses": "SELECT (1 \\! touch SENTINEL\n);",
    "in a body": "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; \\! touch SENTINEL\nEND;",
    "after a body": "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END;\n"
    "\\! touch SENTINEL\n",
    "after COPY data": "COPY made FROM stdin;\n1\n\\.\n\\! touch SENTINEL\n",
    "after COPY data with line feeds of DOS": "COPY made FROM stdin;\r\n1\r\n\\.\r\n\\! touch SENTINEL\r\n",
    "after empty COPY data": "COPY made FROM stdin;\n\\.\n\\! touch SENTINEL\n",
    "after separated statements": "SELECT 1\\; SELECT 2; \\! touch SENTINEL\n",
    "after the end of a restriction": "\\restrict abc\n\\unrestrict abc\n\\! touch SENTINEL\n",
    "on the line of \\unrestrict": "\\restrict abc\n\\unrestrict abc \\! touch SENTINEL\n",
    "behind a carriage return on the line of \\unrestrict": "\\unrestrict abc\r\\! touch SENTINEL\n",
    "on the line of \\connect": "\\connect shop \\! touch SENTINEL\n",
    "as the key of \\restrict": "\\restrict `touch SENTINEL`\n",
    "after a variable": "SELECT ':x', :'x', :\"x\" \\! touch SENTINEL\n",
}
MADE = "CREATE TABLE made (n int);\n"


def refused(target: Target, script: str, sentinel: Path) -> None:
    """Under a single transaction, of which nothing may remain."""
    script = script.replace("SENTINEL", str(sentinel))
    shown = script.replace("\\.", "..")
    at = shown.rindex("\\!" if "\\!" in shown else "\\")
    with pytest.raises(ScriptError) as caught:
        target.load(script)
    assert str(caught.value).startswith(f"Line {script.count(chr(10), 0, at) + 1}: ")
    assert list(sentinel.parent.iterdir()) == []
    assert target.ask("SELECT to_regclass('made')") is None


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_of_psql_does_anything(module_target: Target, tmp_path: Path, command: str) -> None:
    refused(module_target, f"{MADE}{command}\nSELECT 1;\n", tmp_path / "sentinel")


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_hidden_command_is_found_where_psql_would_run_it(
    module_target: Target, tmp_path: Path, hidden: str
) -> None:
    made = "" if hidden.startswith("\ufeff") else MADE
    refused(module_target, made + hidden, tmp_path / "sentinel")


def test_a_command_on_the_line_of_copy_is_refused_before_anything_is_copied(
    target: Target, tmp_path: Path
) -> None:
    for rest in (f" \\! touch {tmp_path / 'sentinel'}\n", f" -- ;\r\\! touch {tmp_path / 'sentinel'}\n"):
        with pytest.raises(ScriptError, match=r"^Line 2: something stands after COPY"):
            target.load(f"{MADE}COPY made FROM stdin;{rest}1\n\\.\n")
    assert list(tmp_path.iterdir()) == []


def test_data_of_a_refused_copy_is_never_read_as_commands(target: Target, tmp_path: Path) -> None:
    sentinel = tmp_path / "sentinel"
    script = f"COPY nowhere FROM stdin;\n\\! touch {sentinel}\nDROP TABLE made;\n\\.\nSELECT 1;\n"
    done = target.load(MADE + script, single_transaction=False, accept_errors=True)
    assert (done.errors, done.statements) == (1, 3)
    assert list(sentinel.parent.iterdir()) == []
    assert target.ask("SELECT to_regclass('made')::text") == "made"


def test_nothing_after_a_command_is_sent(target: Target) -> None:
    with pytest.raises(ScriptError, match=r"^Line 3: the psql command \\q is not run"):
        target.load(f"{MADE}INSERT INTO made VALUES (1);\n\\q\nDROP TABLE made;\n", single_transaction=False)
    assert target.ask("SELECT to_regclass('made')::text") == "made"
