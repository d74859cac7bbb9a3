from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from jobs.pgtools.script.errors import Interrupted, ScriptError, ScriptFailed
from jobs.pgtools.script.wire import Wire
from tests import servers

from .conftest import Target

ACCEPTING: dict[str, Any] = {"single_transaction": False, "accept_errors": True}
TABLE = "CREATE TABLE t (n int PRIMARY KEY);\n"


def test_a_script_is_loaded_whole_and_says_how_it_went(target: Target) -> None:
    script = f"{TABLE}INSERT INTO t VALUES (1);\nCOPY t FROM stdin;\n2\n3\n\\.\nDROP TABLE IF EXISTS x;\n"
    told: list[tuple[int, str]] = []
    done = target.load(script, on_progress=lambda *words: told.append(words))
    assert target.ask("SELECT array_agg(n ORDER BY n) FROM t") == [1, 2, 3]
    assert (done.statements, done.errors, done.first) == (4, 0, [])
    assert done.notices == ['line 7: NOTICE: table "x" does not exist, skipping']
    assert told


def test_the_first_error_names_line_statement_and_reason_and_undoes_the_transaction(target: Target) -> None:
    script = f"{TABLE}\n-- comment\nALTER TABLE public.nowhere\n  ADD x text DEFAULT 'secret';\nSELECT 1;"
    with pytest.raises(ScriptFailed) as caught:
        target.load(script)
    assert caught.value.line == 4
    assert str(caught.value) == (
        "line 4: ALTER TABLE public.nowhere ADD x text DEFAULT '…': "
        'ERROR: relation "public.nowhere" does not exist'
    )
    assert target.ask("SELECT to_regclass('t')") is None


def test_an_error_within_a_long_statement_is_told_by_its_own_line(target: Target) -> None:
    with pytest.raises(ScriptFailed, match=r'line 4: SELECT 1, 2, FROM nothing: ERROR: syntax .* "FROM"'):
        target.load("\nSELECT 1,\n 2,\nFROM nothing;\n")


def test_a_bad_row_is_told_by_its_line_in_the_file(target: Target) -> None:
    with pytest.raises(ScriptFailed, match=r'line 5: COPY t FROM stdin: ERROR: invalid input .* "x"'):
        target.load(f"{TABLE}COPY t FROM stdin;\n1\n2\nx\n4\n\\.\n")
    with pytest.raises(ScriptFailed, match=r"line 4: COPY t FROM stdin: ERROR: duplicate key .* DETAIL: Key"):
        target.load(f"{TABLE}COPY t FROM stdin;\n1\n1\n\\.\n")


def test_accepted_errors_are_counted_and_the_rest_is_loaded(target: Target) -> None:
    script = (
        f"{TABLE}ALTER TABLE nowhere ADD x int;\nCOPY nowhere FROM stdin;\nDROP TABLE t;\n\\.\n"
        "COPY t FROM stdin;\n1\nx\n\\.\nCOPY t FROM stdin;\n5\n\\.\n"
    )
    done = target.load(script, **ACCEPTING)
    assert (done.statements, done.errors) == (5, 3)
    assert [said.split(":")[0] for said in done.first] == ["line 2", "line 3", "line 8"]
    assert target.ask("SELECT array_agg(n) FROM t") == [5]


def test_of_many_errors_the_first_are_kept(target: Target) -> None:
    done = target.load("SELECT nothing;\n" * 50, **ACCEPTING)
    assert done.errors == 50
    assert len(done.first) == 20
    assert done.first[-1].startswith("line 20: SELECT nothing: ERROR: column")


@pytest.mark.parametrize("single", [True, False])
def test_an_error_among_many_inserts_is_told_as_if_each_went_alone(target: Target, single: bool) -> None:
    rows = [f"INSERT INTO t VALUES ({n});\n" for n in range(1000)]
    rows[800] = "INSERT INTO t VALUES ('x;y');\n"
    with pytest.raises(ScriptFailed, match=r"^line 802: INSERT INTO t VALUES \('…'\): ERROR: invalid input"):
        target.load(TABLE + "".join(rows), single_transaction=single)
    if single:
        assert target.ask("SELECT to_regclass('t')") is None
    else:
        assert target.ask("SELECT count(*) FROM t") == 800
        target.run("DROP TABLE t")
        done = target.load(TABLE + "".join(rows), **ACCEPTING)
        assert (done.statements, done.errors) == (1001, 1)
        assert target.ask("SELECT count(*) FROM t") == 999


def test_a_lost_session_is_never_one_of_the_accepted_errors(target: Target) -> None:
    script = f"SELECT nothing;\n{TABLE}SELECT pg_terminate_backend(pg_backend_pid());\nSELECT nothing;\n"
    with pytest.raises(
        ScriptFailed, match=r"^line 3: SELECT pg_terminate.*: the connection was lost: .*command"
    ):
        target.load(script, **ACCEPTING)


def test_a_session_lost_in_the_middle_of_data_is_an_error(target: Target) -> None:
    session = target.connect()
    pid = session.info.backend_pid

    def chunks() -> Iterator[bytes]:
        yield TABLE.encode() + b"COPY t FROM stdin;\n"
        yield b"1\n"
        target.ask(f"SELECT pg_terminate_backend({pid})")
        for n in range(2, 500_000, 1000):
            yield b"".join(b"%d\n" % m for m in range(n, n + 1000))
        yield b"\\.\n"

    with pytest.raises(ScriptFailed, match=r"line \d+: COPY t FROM stdin: the connection was lost"):
        target.load(chunks(), connection=session, **ACCEPTING)


def test_stop_ends_a_long_statement_and_what_was_done_is_undone(target: Target) -> None:
    told: list[str] = []
    begun = time.monotonic()
    with target.connect() as session:
        with pytest.raises(Interrupted):
            target.load(
                f"{TABLE}SELECT pg_sleep(60);\n",
                connection=session,
                on_progress=lambda _line, words: told.append(words),
                stop=lambda: "SELECT pg_sleep(60)" in told,
            )
        assert session.execute("SELECT to_regclass('t')").fetchone() == (None,)
    assert time.monotonic() - begun < 20


def test_stop_and_a_source_that_fails_end_a_copy_and_leave_a_session_that_works(target: Target) -> None:
    def endless() -> Iterator[bytes]:
        yield TABLE.encode() + b"COPY t FROM stdin;\n"
        yield from (b"%d\n" % n for n in range(1 << 40))

    def broken() -> Iterator[bytes]:
        yield TABLE.encode() + b"COPY t FROM stdin;\n1\n"
        raise OSError("the store is gone")

    begun = time.monotonic()
    for chunks, error, seconds in ((endless(), Interrupted, 0.5), (broken(), OSError, 60.0)):
        with target.connect() as session:
            with pytest.raises(error):
                target.load(chunks, connection=session, stop=lambda s=seconds: time.monotonic() > begun + s)
            assert session.execute("SELECT to_regclass('t')").fetchone() == (None,)


def test_what_is_checked_before_the_commit_can_prevent_it(target: Target) -> None:
    left = [TABLE.encode(), b"INSERT INTO t VALUES (1);", b"\n-- the end"]
    seen: list[int] = []

    def chunks() -> Iterator[bytes]:
        while left:
            yield left.pop(0)

    def check() -> None:
        seen.append(len(left))
        raise ValueError("the hash is wrong")

    with pytest.raises(ValueError, match="hash"):
        target.load(chunks(), before_commit=check)
    assert seen == [0]
    assert target.ask("SELECT to_regclass('t')") is None
    with pytest.raises(ValueError, match="hash"):
        target.load(TABLE, before_commit=check, single_transaction=False)


def test_a_check_at_the_commit_fails_the_load(target: Target) -> None:
    deferred = "ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED"
    script = f"CREATE TABLE t (n int UNIQUE, m int);\n{deferred.replace('(n) REF', '(m) REF')};\n"
    with pytest.raises(ScriptFailed, match=r"^COMMIT: ERROR: insert or update .* violates foreign key"):
        target.load(f"{script}INSERT INTO t VALUES (1, 2);\n")


def test_a_transaction_that_the_script_leaves_open_is_no_success(target: Target) -> None:
    with pytest.raises(ScriptError, match="ends inside a transaction that it began"):
        target.load(f"BEGIN;\n{TABLE}", single_transaction=False)
    assert target.load(f"BEGIN;\n{TABLE}COMMIT;\n", single_transaction=False).statements == 3


def test_objects_belong_to_the_role(target: Target) -> None:
    target.load(TABLE, role=servers.APP)
    assert target.ask("SELECT tableowner::text FROM pg_tables WHERE tablename = 't'") == servers.APP
    with pytest.raises(ScriptFailed, match=r'^SET ROLE "nobody here": ERROR: role .* does not exist'):
        target.load(TABLE, role="nobody here")


def test_what_is_sent_is_one_statement_for_the_server_or_none(target: Target) -> None:
    """If scanner and server ever disagree, nothing that stands behind a semicolon passes unseen."""
    with target.connect() as session:
        wire = Wire(session, lambda: None)
        with pytest.raises(psycopg.errors.SyntaxError, match="cannot insert multiple commands"):
            wire.query(b"CREATE TABLE t (n int); COMMIT")
        wire.query(b"SELECT ';'")
        with pytest.raises(psycopg.OperationalError, match="began to send rows"):
            wire.query(b"COPY (SELECT 1) TO STDOUT")


def test_secrets_are_in_no_error(target: Target) -> None:
    for password in ("'s3cret'", "$$s3cret$$", "E's3\\'cret'"):
        with pytest.raises(ScriptFailed) as caught:
            target.load(f"ALTER ROLE nobody PASSWORD {password};")
        assert "cret" not in str(caught.value)


def test_rows_that_a_script_asks_for_do_not_stay_in_memory(target: Target) -> None:
    assert target.load("SELECT repeat('x', 1000) FROM generate_series(1, 20000);").statements == 1


def test_text_in_an_encoding_with_doubtful_bytes_arrives(target: Target) -> None:
    head = b"SET client_encoding = 'SJIS';\nCREATE TABLE t (s text);\nCOPY t FROM stdin;\n"
    rows = "ソ\\\\\n".encode("cp932") + b"\\.\n" + "INSERT INTO t VALUES (E'表'), (E'a\\nb');".encode("cp932")
    target.load([head, rows])
    assert target.ask('SELECT array_agg(s ORDER BY s COLLATE "C") FROM t') == ["a\nb", "ソ\\", "表"]
