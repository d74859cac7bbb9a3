from __future__ import annotations

import io
import sys
import uuid
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from jobs import services
from jobs.management.commands import enqueue_restore
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Upload
from jobs.pgtools.options import Field
from jobs.pgtools.restore_options import PRESETS, RESTORE_FIELDS
from jobs.secrets import seal
from jobs.stores import default_storage
from tests.commands.conftest import Call
from tests.commands.targets import DDL, MakeTarget, Terminal
from tests.commands.targets import dump as dump
from tests.commands.targets import make_target as make_target

SAMPLES: dict[str, tuple[list[str], Any]] = {
    "switch": ([], True),
    "either": ([], True),
    "number": (["5"], 5),
    "patterns": (["a*"], ["a*"]),
    "sections": (["data"], ["data"]),
    "text": (["admin"], "admin"),
    "choice": (["create"], "create"),
}

# What an option must be accompanied by to make sense.
COMPANIONS = {"if_exists": ["--clean"], "disable_triggers": ["--data-only"]}
DEFAULTS = {"analyze", "exit_on_error"}


def parsed(*arguments: str) -> dict[str, Any]:
    """The flags that the command makes of its arguments."""
    command = enqueue_restore.Command()
    options = command.create_parser("manage.py", "enqueue_restore").parse_args(["--into=x", "id", *arguments])
    return command.flags(vars(options))


@pytest.mark.parametrize(
    "field", [field for field in RESTORE_FIELDS if field.name not in DEFAULTS], ids=lambda field: field.name
)
def test_every_option_of_a_restore_can_be_given(field: Field) -> None:
    words, value = SAMPLES[field.kind]

    assert parsed(f"--{field.option}", *words, *COMPANIONS.get(field.name, []))[field.name] == value


def test_what_is_on_can_be_turned_off_and_presets_are_overruled_by_nothing() -> None:
    assert parsed("--no-analyze", "--no-exit-on-error") == {"analyze": False, "exit_on_error": False}
    assert parsed("--preset=managed", "--keep-days=0") == {**PRESETS["managed"], "keep_days": 0}


def test_an_empty_target_is_filled_without_a_question(
    call: Call, make_target: MakeTarget, dump: Path
) -> None:
    target = make_target("shop")

    said = call("enqueue_restore", "--file", str(dump), "--into", "shop", "--json")

    (printed,) = said.objects
    assert (said.code, printed["queue"], printed["status"], printed["database"]) == (
        0, "restore", "pending", "shop",
    )  # fmt: skip
    payload, upload = QueuedJob.objects.get().payload, Upload.objects.get()
    assert (payload["mode"], payload["target_name"]) == ("empty", target.name)
    assert (payload["upload_id"], upload.name, upload.state) == (str(upload.id), "shop.dump", "good")
    assert upload.user == target.row.user


def test_data_is_replaced_only_with_consent(call: Call, make_target: MakeTarget, dump: Path) -> None:
    target = make_target("shop", DDL)
    restore = ["enqueue_restore", "--file", str(dump), "--into", "shop"]

    refused = call(*restore)
    assert refused.code == 2
    assert f"{target.name} at 127.0.0.1:{target.server.port}" in refused.err
    assert "will be replaced: say --yes" in refused.err
    assert not QueuedJob.objects.exists()
    assert not Upload.objects.exists(), "what was stored for nothing is removed again"

    assert call(*restore, "--yes").code == 0
    assert QueuedJob.objects.get().payload["mode"] == "replace"


@pytest.mark.parametrize("right", [True, False])
def test_on_a_terminal_the_targets_name_is_asked_for(
    make_target: MakeTarget, dump: Path, monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    target = make_target("shop", DDL)
    monkeypatch.setattr(sys, "stdin", Terminal(f"{target.name if right else 'shop'}\n"))
    asked = io.StringIO()

    with nullcontext() if right else pytest.raises(CommandError, match="nothing was done"):
        call_command("enqueue_restore", "--file", dump, "--into", "shop", stdout=io.StringIO(), stderr=asked)

    assert f"1 table) will be replaced. Type {target.name} to go on" in asked.getvalue()
    assert QueuedJob.objects.exists() is right


def test_a_restore_is_listed_cancelled_and_run_again(call: Call, make_target: MakeTarget, dump: Path) -> None:
    make_target("shop")
    (queued,) = call("enqueue_restore", "--file", str(dump), "--into", "shop", "--no-owner", "--json").objects
    assert [row["id"] for row in call("list_jobs", "--queue=restore", "--json").objects] == [queued["id"]]

    (ended,) = call("cancel_job", queued["id"], "--json").objects
    assert (ended["status"], ended["database"]) == ("cancelled", "shop")

    (again,) = call("rerun_job", queued["id"], "--json").objects
    first, second = (QueuedJob.objects.get(id=row["id"]).payload for row in (queued, again))
    assert (again["status"], second) == ("pending", first)
    assert second["flags"] == {"no_owner": True}


def test_another_name_means_a_new_database(call: Call, make_target: MakeTarget, dump: Path) -> None:
    make_target("shop", DDL)

    assert call("enqueue_restore", "--file", str(dump), "--into", "shop", "--as", "shop copy").code == 0

    payload = QueuedJob.objects.get().payload
    assert (payload["mode"], payload["target_name"]) == ("new", "shop copy")


def test_a_check_tells_and_does_nothing(call: Call, make_target: MakeTarget, dump: Path) -> None:
    target = make_target("shop", DDL)
    restore = ["enqueue_restore", "--file", str(dump), "--into", "shop", "--check"]

    said = call(*restore)
    assert said.code == 0
    assert said.out.startswith(f"replace: {target.name} at 127.0.0.1:{target.server.port} (")
    (printed,) = call(*restore, "--json").objects
    assert (printed["stops"], printed["mode"], printed["target_name"]) == (False, "replace", target.name)
    assert {"level", "title", "detail", "remedy"} == set(printed["findings"][0])

    stopped = call(*restore, "--mode", "new")
    assert stopped.code == 1
    assert "  stop " in stopped.out
    assert not QueuedJob.objects.exists()
    assert not Upload.objects.exists()


def test_what_stands_against_it_refuses_with_the_remedy(
    call: Call, make_target: MakeTarget, dump: Path
) -> None:
    target = make_target("shop", DDL)

    said = call("enqueue_restore", "--file", str(dump), "--into", "shop", "--mode", "new")

    assert said.code == 2
    assert target.name in said.err
    assert "replace" in said.err
    assert not QueuedJob.objects.exists()
    assert not Upload.objects.exists()


def test_a_protected_database_is_refused(call: Call, make_target: MakeTarget, dump: Path) -> None:
    make_target("shop", protected=True)

    said = call("enqueue_restore", "--file", str(dump), "--into", "shop")

    assert said.code == 2
    assert "protected" in said.err
    assert not QueuedJob.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--into", "nosuch"], "No database is called 'nosuch'"),
        (["--into", "shop", "--if-exists"], "if_exists needs clean"),
        (["--into", "shop", "--data-only", "--schema-only"], "exclude each other"),
        (["--into", "shop", "--mode", "empty", "--clean"], "nothing to drop"),
        (["--into", "shop", "--as", "x" * 64], "63"),
        (["--into", "shop", "--mode", "gently"], "invalid choice"),
        ([], "--into"),
    ],
)
def test_refusals_queue_nothing(
    call: Call, make_target: MakeTarget, dump: Path, arguments: list[str], expected: str
) -> None:
    make_target("shop")

    said = call("enqueue_restore", "--file", str(dump), *arguments)

    assert expected in said.err
    assert said.code == 2 or "invalid" in expected or not arguments
    assert not QueuedJob.objects.exists()
    assert not Upload.objects.exists()


def test_files_that_cannot_be_restored_are_refused(
    call: Call, make_target: MakeTarget, tmp_path: Path
) -> None:
    make_target("shop")
    picture = tmp_path / "shop.dump"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1000))

    said = call("enqueue_restore", "--file", str(picture), "--into", "shop")
    assert (said.code, "PNG" in said.err) == (2, True)
    gone = call("enqueue_restore", "--file", str(tmp_path / "gone"), "--into", "shop")
    assert (gone.code, "No such file" in gone.err) == (2, True)
    assert not Upload.objects.exists()


# Which backup ------------------------------------------------------------------------------------


def a_backup(user: User, database: Database | None, *, hours: int, state: str = "good") -> BackupJob:
    row = BackupJob.objects.create(
        user=user, database=database, database_name="shop", status="completed", storage_key="shop/x.dump",
        size=1, sha256="0" * 64, completed_at=f"2026-01-01T{hours:02}:00Z",
    )  # fmt: skip
    BackupCopy.objects.create(
        backup=row, storage=default_storage(), storage_key=f"shop/{row.id}.dump", state=state,
        is_first=True, size=1, sha256="0" * 64,
    )  # fmt: skip
    return row


def test_the_newest_good_backup_is_taken(superuser: User) -> None:
    shop = Database.objects.create(user=superuser, name="shop", sealed_url=seal("postgresql://u@h/shop"))
    a_backup(superuser, shop, hours=1)
    newest = a_backup(superuser, shop, hours=2)
    BackupJob.objects.create(user=superuser, database=shop, database_name="shop", status="failed")
    a_backup(superuser, shop, hours=3, state="failed")

    assert enqueue_restore._backup(superuser, "latest:shop") == newest
    assert enqueue_restore._backup(superuser, str(newest.id)) == newest
    Database.objects.filter(id=shop.id).delete()
    assert enqueue_restore._backup(superuser, "latest:shop") == newest, "its backups outlive the database"


def test_anothers_backup_is_unknown(superuser: User, user: User) -> None:
    theirs = a_backup(superuser, None, hours=1)

    for wanted in (str(theirs.id), "latest:shop", str(uuid.uuid4())):
        with pytest.raises(services.NotFound):
            enqueue_restore._backup(user, wanted)


def test_what_is_no_id_is_explained(call: Call, make_target: MakeTarget) -> None:
    make_target("shop")

    said = call("enqueue_restore", "shop", "--into", "shop")

    assert said.code == 2
    assert "latest:NAME" in said.err
