"""What is chosen from an archive restores by itself, and whole."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from jobs.pgtools.archive.select import Selection, list_text, selection
from jobs.pgtools.conninfo import Conninfo
from tests import sample
from tests.pgtools.archive.conftest import Dumps
from tests.processors import restoring

Restore = Callable[..., str]


@pytest.fixture
def restore(dumps: Dumps, tmp_path: Path) -> Iterator[Restore]:
    """As its owner into a new database, or the one that is named; its name. Stops at the first error."""
    server, made = dumps.place.server, []

    def run(chosen: Selection, name: str = "") -> str:
        if not name:
            name = f"chosen_{uuid.uuid4().hex[:8]}"
            made.append(name)
            server.create_database(name)
        conninfo = Conninfo.parse(server.url(name))
        archive, listed = tmp_path / "archive", tmp_path / "list"
        archive.write_bytes(dumps.custom)
        listed.write_text(list_text(chosen.ids))
        tool = str(dumps.place.toolset.tool("pg_restore"))
        argv = [tool, "--exit-on-error", f"--use-list={listed}", f"--dbname={name}", str(archive)]
        restoring.run(dumps.place.toolset, conninfo, argv, tmp_path)
        return name

    yield run
    for name in made:
        server.drop_database(name)


ORDER = '"Order; DROP TABLE kinds"'
FOREIGN_KEY = (
    "The foreign key Order; DROP TABLE kinds_kind_fkey of table public.Order; DROP TABLE kinds is left out:"
    " the table it refers to is not chosen."
)
TABLES = ("kinds", ORDER, "events", "counted", '"A view"', '"-s"."--help"', '"tab.le"?"with tab"')
LEFT = {'"select"."from"', "public.secrets", "public.cache", "public.empty", 'public."Odd seq"'}


def test_chosen_tables_restore_with_all_that_is_theirs(dumps: Dumps, restore: Restore) -> None:
    result = selection(dumps.toc, tables=TABLES)
    assert (result.unmatched, result.missing) == ([], [])
    server, name = dumps.place.server, restore(result)
    source, copy = (sample.definitions(server, of) for of in (dumps.place.name, name))
    assert {key: source[key] for key in copy} == copy
    left = [key for key in source if key not in copy]
    assert {of for kind, of in left if kind == "relation"} == LEFT | {'"select".from_pkey'}
    for kind in ("column", "constraint", "index", "comment", "sequence", "trigger", "statistics", "view"):
        others = {of for of_kind, of in left if of_kind == kind and not any(table in of for table in LEFT)}
        assert others <= {'"select".from_pkey', "large object 4242", 'schema "select"'}, kind
    rows, restored = sample.rows(server, dumps.place.name), sample.rows(server, name)
    assert {key: rows[key] for key in restored} == restored
    assert len(restored) == len(rows) - len(LEFT) - 2  # and the large objects


def test_chosen_schemas_restore_with_all_that_is_in_them(dumps: Dumps, restore: Restore) -> None:
    result = selection(dumps.toc, schemas=('"-s"', "tools", '"select"'))
    assert (result.unmatched, result.missing) == ([], [])
    server, name = dumps.place.server, restore(result)
    source, copy = (sample.definitions(server, of) for of in (dumps.place.name, name))
    assert {key: source[key] for key in copy} == copy
    rule = ("rule", '"select"."from".quiet')
    for key in (("schema", "tools"), ("defaults", "tools"), rule, ("comment", "schema tools")):
        assert copy[key] == source[key]
    assert sample.rows(server, name)['"-s"."--help_id_seq"'] == (4711, False)


def test_parts_restore_by_themselves(dumps: Dumps, restore: Restore) -> None:
    """A partition without its whole, a table without the one it refers to, sequences without their tables."""
    tables = ("events_2025", ORDER, "secrets", '"Odd seq"', '"--help_id_seq"', "kinds_id_seq", '"Order*"')
    result = selection(dumps.toc, tables=tables)
    assert result.unmatched == ['"Order*"']
    assert result.missing == [
        "Sequence public.kinds_id_seq is left out: it is a part of a table that is not chosen.",
        "Table public.events_2025 comes as a table of its own: public.events, whose partition it is, is not"
        " chosen.",
        FOREIGN_KEY,
    ]
    server, name = dumps.place.server, restore(result)
    copy, rows = sample.definitions(server, name), sample.rows(server, name)
    assert {("policy", "own"), ("index", "public.events_2025_n_idx")} <= set(copy)
    assert f"public.{ORDER}.Order; DROP TABLE kinds_kind_fkey" not in {of for _, of in copy}
    assert (rows['"-s"."--help_id_seq"'], rows['"public"."Odd seq"']) == ((4711, False), (-11, True))
    with psycopg.connect(server.superuser_url(name)) as session:
        secured = session.execute("SELECT relrowsecurity FROM pg_class WHERE relname = 'secrets'")
        assert secured.fetchone() == (True,)


def test_all_but_some_restores(dumps: Dumps, restore: Restore) -> None:
    result = selection(dumps.toc, exclude_tables=("kinds", '"A view"'), exclude_schemas=('"select"',))
    assert (result.unmatched, result.missing) == ([], [FOREIGN_KEY])
    server, name = dumps.place.server, restore(result)
    rows = sample.rows(server, dumps.place.name)
    for gone in ('"public"."kinds"', '"public"."kinds_id_seq"', '"select"."from"'):
        del rows[gone]
    assert sample.rows(server, name) == rows


def test_a_lost_table_comes_back_into_its_database(dumps: Dumps, restore: Restore) -> None:
    """Where types, functions and schemas are still there."""
    name = restore(selection(dumps.toc))
    server = dumps.place.server
    with psycopg.connect(server.url(name), autocommit=True) as session:
        session.execute(sql.SQL("DROP TABLE kinds, events CASCADE"))
    lost = selection(dumps.toc, tables=("kinds", "events", "counted", '"A view"'), needed=False)
    assert lost.missing[0] == "Extension citext is not chosen; table public.kinds needs it."
    restore(lost, name)
    assert sample.rows(server, name) == sample.rows(server, dumps.place.name)


def test_everything_is_chosen_without_patterns(dumps: Dumps) -> None:
    everything = tuple(entry.dump_id for entry in dumps.toc.entries)
    assert selection(dumps.toc) == Selection(everything, [], [])
    quiet = selection(dumps.toc, without=frozenset({"extension comments"})).ids
    left = [dumps.toc.by_id[dump_id] for dump_id in everything if dump_id not in quiet]
    assert [(entry.kind, entry.name) for entry in left] == [
        ("COMMENT", "EXTENSION citext"),
        ("COMMENT", "EXTENSION pgcrypto"),
    ]
