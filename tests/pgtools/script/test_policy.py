from __future__ import annotations

import pytest

from jobs.pgtools.script.errors import ScriptError
from jobs.pgtools.script.items import Connect, Statement
from jobs.pgtools.script.policy import LEFT_OUT, Policy


def policy(target: str = "copy", *, single: bool = False, skip: frozenset[str] = frozenset()) -> Policy:
    lacking = frozenset({"transaction_timeout"})
    return Policy(target, single_transaction=single, lacking=lacking, skip=skip)


def sent(text: str, **options: object) -> str | None:
    found = policy(**options).for_server(Statement(7, text.encode()))  # type: ignore[arg-type]
    return None if found is None else found.decode()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("CREATE DATABASE shop WITH TEMPLATE = template0", None),
        ("DROP DATABASE shop", None),
        ('drop database if exists "Shop"', None),
        ("ALTER DATABASE shop SET work_mem TO '7MB'", "ALTER DATABASE \"copy\" SET work_mem TO '7MB'"),
        ('ALTER DATABASE "a ""b" OWNER TO app', 'ALTER DATABASE "copy" OWNER TO app'),
        ("COMMENT ON DATABASE shop IS 'of shop'", "COMMENT ON DATABASE \"copy\" IS 'of shop'"),
        ("GRANT CREATE, TEMP ON DATABASE shop TO a", 'GRANT CREATE, TEMP ON DATABASE "copy" TO a'),
        ("REVOKE ALL ON DATABASE shop FROM PUBLIC", 'REVOKE ALL ON DATABASE "copy" FROM PUBLIC'),
        ("ALTER ROLE a IN DATABASE shop SET x TO 1", 'ALTER ROLE a IN DATABASE "copy" SET x TO 1'),
        ("SECURITY LABEL FOR p ON DATABASE shop IS ''", "SECURITY LABEL FOR p ON DATABASE \"copy\" IS ''"),
        ("GRANT SELECT ON database TO a", "GRANT SELECT ON database TO a"),
        ("COMMENT ON COLUMN database.shop IS 'x'", "COMMENT ON COLUMN database.shop IS 'x'"),
        ("CREATE TABLE database (n int)", "CREATE TABLE database (n int)"),
    ],
)
def test_what_is_said_of_the_scripts_database_is_said_of_the_target(
    written: str, expected: str | None
) -> None:
    assert sent(written) == expected


def test_the_targets_name_needs_no_encoding() -> None:
    assert (
        sent("ALTER DATABASE s SET x TO 1", target='a"ü\\')
        == 'ALTER DATABASE U&"a""\\+0000fc\\\\" SET x TO 1'
    )


def test_a_script_is_about_one_database() -> None:
    one = policy()
    one.for_server(Statement(1, b'CREATE DATABASE "Shop"'))
    one.connect(Connect(2, "Shop"))
    with pytest.raises(ScriptError, match='Line 3: the script is about database "Shop" and now about "prod"'):
        one.for_server(Statement(3, b"DROP DATABASE prod"))
    with pytest.raises(ScriptError, match=r'Line 4: .* now about "prod"'):
        one.connect(Connect(4, "prod"))
    for several in (b'GRANT ALL ON DATABASE "Shop", prod TO a', b'ALTER DATABASE "Shop" RENAME TO prod'):
        with pytest.raises(ScriptError, match="Line 5: "):
            one.for_server(Statement(5, several))


@pytest.mark.parametrize(
    "written",
    [
        "COPY t FROM PROGRAM 'touch x'",
        "COPY t FROM '/etc/passwd'",
        "COPY t TO '/tmp/x'",
        "COPY t TO PROGRAM 'cat'",
        "COPY (SELECT '\\'') TO PROGRAM 'cat'",
        "COPY t TO stdout",
        "copy/**/t from/* stdin */program 'x'",
        "COPY t FROM",
    ],
)
def test_copies_with_programs_and_files_of_the_server_are_refused(written: str) -> None:
    with pytest.raises(ScriptError, match="Line 7: COPY"):
        sent(written)


@pytest.mark.parametrize(
    ("written", "is_sent"),
    [
        ("BEGIN", False),
        ("begin isolation level serializable", False),
        ("START TRANSACTION", False),
        ("COMMIT", False),
        ("END", False),
        ("SAVEPOINT a", True),
        ("ROLLBACK TO SAVEPOINT a", True),
        ("ROLLBACK WORK TO a", True),
        ("COMMIT PREPARED 'a'", True),
        ("PREPARE a AS SELECT 1", True),
    ],
)
def test_a_single_transaction_contains_the_scripts_own(written: str, is_sent: bool) -> None:
    assert sent(written, single=True) == (written if is_sent else None)
    assert sent(written) == written


@pytest.mark.parametrize("written", ["ROLLBACK", "abort", "ROLLBACK AND CHAIN", "PREPARE TRANSACTION 'a'"])
def test_a_single_transaction_cannot_be_undone_by_the_script(written: str) -> None:
    with pytest.raises(ScriptError, match=r"Line 7: .* without single transaction"):
        sent(written, single=True)
    assert sent(written) == written


def test_settings_that_the_server_lacks_are_left_out() -> None:
    assert sent("SET transaction_timeout = 0") is None
    assert sent("SET SESSION Transaction_Timeout TO 0") is None
    assert sent("SET statement_timeout = 0") == "SET statement_timeout = 0"


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("no_owner", 'ALTER FUNCTION a.f(n integer, t text) OWNER TO "Some one"'),
        ("no_owner", "SET SESSION AUTHORIZATION 'app'"),
        ("no_privileges", "GRANT SELECT(a) ON TABLE t TO a"),
        ("no_privileges", "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO b"),
        ("no_tablespaces", "SET default_tablespace = fast"),
        ("no_comments", "COMMENT ON TABLE t IS 'x'"),
        ("no_extension_comments", "COMMENT ON EXTENSION e IS 'x'"),
        ("no_publications", "ALTER PUBLICATION p ADD TABLE ONLY t"),
        ("no_subscriptions", "CREATE SUBSCRIPTION s CONNECTION 'host=a' PUBLICATION p"),
        ("no_security_labels", "SECURITY LABEL FOR p ON TABLE t IS 'x'"),
        ("no_policies", "ALTER TABLE t ENABLE ROW LEVEL SECURITY"),
    ],
)
def test_options_leave_statements_out(option: str, written: str) -> None:
    assert sent(written, skip=frozenset({option})) is None
    others = frozenset(LEFT_OUT) - {option, "no_comments"}
    assert sent(written, skip=others) == written


def test_options_leave_nothing_else_out() -> None:
    for text in (
        "CREATE TABLE t (owner text)",
        "ALTER TABLE t ADD COLUMN owner text",
        "COMMENT ON TABLE t IS ' OWNER TO x'",
    ):
        assert sent(text, skip=frozenset(LEFT_OUT) - {"no_comments"}) == text
