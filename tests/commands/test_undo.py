"""A backup, its restore in two ways, and the way back: by commands alone, with a real worker."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth.models import User

from jobs.models import RestoreJob
from tests.commands.conftest import Call
from tests.commands.targets import DDL, MakeTarget
from tests.commands.targets import make_target as make_target
from tests.conftest import StartWorker


@pytest.mark.django_db(transaction=True)
def test_restored_replaced_undone_and_dropped(
    call: Call, make_target: MakeTarget, start_worker: StartWorker
) -> None:
    shop = make_target("shop", DDL)
    start_worker("--queue", "backup", "--queue", "restore")
    assert call("enqueue_backup", "shop", "--wait").code == 0
    shop.run("DELETE FROM orders WHERE n > 10")

    beside = call(
        "enqueue_restore", "latest:shop", "--into", "shop", "--as", f"{shop.name} copy", "--wait", "--json"
    )
    assert beside.code == 0, beside
    assert [printed["status"] for printed in beside.objects] == ["completed"]
    assert shop.number("SELECT count(*) FROM orders", f"{shop.name} copy") == 50
    assert shop.number("SELECT count(*) FROM orders") == 10

    replaced = call("enqueue_restore", "latest:shop", "--into", "shop", "--yes", "--wait")
    assert replaced.code == 0, replaced
    assert shop.number("SELECT count(*) FROM orders") == 50
    row = RestoreJob.objects.get(mode="replace")
    assert row.kept_name is not None
    assert f"{row.kept_name}: `undo_restore {row.id}` brings it back" in replaced.out
    assert f"{row.id}  {shop.name}" in call("undo_restore").out

    assert "say --yes" in call("undo_restore", str(row.id)).err
    undone = call("undo_restore", str(row.id), "--yes")
    assert (undone.code, undone.out.strip()) == (0, f"{shop.name} is again what it was before.")
    assert shop.number("SELECT count(*) FROM orders") == 10

    row.refresh_from_db()
    assert call("undo_restore", str(row.id), "--drop", "--yes").code == 0
    assert shop.databases() == [shop.name, f"{shop.name} copy"]
    assert call("undo_restore").out == "No replaced database is kept.\n"
    again = call("undo_restore", str(row.id), "--yes")
    assert (again.code, f"No replaced database of job {row.id} is kept" in again.err) == (2, True)


def test_what_is_unknown_or_anothers_is_not_touched(call: Call, superuser: User, user: User) -> None:
    theirs = RestoreJob.objects.create(
        user=superuser, database_name="shop", target_name="shop", status="completed", kept_name="shop_before"
    )

    for job_id in (theirs.id, uuid.uuid4()):
        said = call("undo_restore", str(job_id), "--yes", "--user", user.username)
        assert (said.code, f"No restore or migration {job_id} is known" in said.err) == (2, True)
