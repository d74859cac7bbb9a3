from __future__ import annotations

import pytest
from django.conf import settings
from psycopg import sql

from jobs.management.demo import compare, sample
from jobs.models import BackupJob, Database
from tests.commands.conftest import Call


@pytest.mark.django_db(transaction=True)
def test_demo_backs_up_restores_and_compares(manage: Call) -> None:
    said = manage("demo")

    assert said.code == 0, said
    backup = BackupJob.objects.get()
    assert f"backup    {backup.id}" in said.out
    assert f"size      {backup.size} bytes" in said.out
    assert f"sha256    {backup.sha256}" in said.out
    assert "public.order_lines           50,000        50,000  same" in said.out
    assert "DIFFERENT" not in said.out
    assert backup.user.username == "demo"
    assert not backup.user.is_active

    again = manage("demo")
    assert again.code == 0, again
    assert Database.objects.count() == 1


def test_a_copy_that_differs_is_noticed(db: None) -> None:
    with sample.prepared(settings.PGBR_HOME) as server:
        ours, theirs = (sample.connect(server.of_role(name)) for name in (sample.COPY, sample.COPY))
        with ours, theirs:
            ours.execute("CREATE TABLE t AS SELECT generate_series(1, 3) AS n")
            assert all(line.same for line in compare.tables(ours, theirs))
            with sample.connect(server.of_role(sample.SOURCE)) as source:
                (line,) = [line for line in compare.tables(ours, source) if line.name == "public.t"]
                assert (line.source_rows, line.copy_rows, line.same) == (3, -1, False)
                assert compare.definitions(ours, source)["indexes"][1] is False


def test_a_database_of_somebody_else_is_left_alone(db: None) -> None:
    with sample.prepared(settings.PGBR_HOME) as server, sample.connect(server.superuser) as session:
        name = sql.Identifier(sample.COPY)
        session.execute(sql.SQL("ALTER DATABASE {} OWNER TO pgbr").format(name))
    try:
        with pytest.raises(sample.DemoFailed, match="belongs to pgbr"), sample.prepared(settings.PGBR_HOME):
            pass
    finally:
        with sample.connect(server.superuser) as session:
            session.execute(sql.SQL("DROP DATABASE {}").format(name))
