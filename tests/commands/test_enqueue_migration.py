from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.management.commands import enqueue_migration
from jobs.management.options import given
from jobs.models import MigrationJob, QueuedJob
from jobs.secrets import unseal
from tests.commands.conftest import Call
from tests.commands.targets import DDL, MakeTarget, Target
from tests.commands.targets import make_target as make_target
from tests.servers import PASSWORDS, RESTORER


@pytest.fixture
def shop(make_target: MakeTarget) -> Target:
    return make_target("shop", DDL)


def parsed(*arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flags of the dump and of the restore that the command makes of its arguments."""
    command = enqueue_migration.Command()
    parser = command.create_parser("manage.py", "enqueue_migration")
    options = vars(parser.parse_args(["--from=x", "--to=y", *arguments]))
    dumped = given(enqueue_migration.DUMP_OPTIONS, options, enqueue_migration.PREFIX)
    return dumped, command.flags(options)


def test_each_side_has_its_options() -> None:
    assert parsed("--dump-table", "a*", "--table", "b*", "--no-dump-large-objects", "--no-analyze") == (
        {"tables": ["a*"], "large_objects": False},
        {"tables": ["b*"], "analyze": False},
    )


def test_registered_databases_are_named(call: Call, shop: Target, make_target: MakeTarget) -> None:
    target = make_target("new home")

    said = call(
        "enqueue_migration", "--from", "shop", "--to", "new home", "--dump-exclude-table", "x", "--json"
    )

    (printed,) = said.objects
    assert (said.code, printed["queue"], printed["database"]) == (0, "migration", "new home")
    payload = QueuedJob.objects.get().payload
    assert (payload["mode"], payload["target_name"]) == ("empty", target.name)
    assert payload["source_database_id"] == str(shop.row.id)
    assert payload["flags"]["dump"] == {"exclude_tables": ["x"]}
    assert MigrationJob.objects.get().target_database == target.row


def test_urls_come_by_standard_input_and_are_sealed(
    call: Call, shop: Target, make_target: MakeTarget, superuser: User
) -> None:
    target = make_target("elsewhere")
    source_url, target_url = (each.server.url(each.name, RESTORER) for each in (shop, target))

    said = call("enqueue_migration", "--from", "-", "--to", "-", stdin=f"{source_url}\n{target_url}\n")

    assert said.code == 0, said
    row = MigrationJob.objects.get()
    assert unseal(row.source_sealed_url, "") == source_url
    assert unseal(row.target_sealed_url, "") == target_url
    shown = (
        said.out + said.err + str(QueuedJob.objects.values().get()) + str(MigrationJob.objects.values().get())
    )
    assert PASSWORDS[RESTORER] not in shown
    assert "re%3Astorer" not in shown
    assert "can be read" not in said.err


def test_a_password_among_the_arguments_is_remarked_on(call: Call, shop: Target) -> None:
    said = call("enqueue_migration", "--to", "shop", "--from", "postgresql://u:hunter2@127.0.0.1:1/x")

    assert "The password in --from can be read by every user of this machine: use --from -" in said.err
    assert (said.code, "hunter2" in said.err) == (2, False)


def test_data_is_replaced_only_with_consent(call: Call, shop: Target, make_target: MakeTarget) -> None:
    target = make_target("elsewhere", DDL)
    migrate = ["enqueue_migration", "--from", "shop", "--to", "elsewhere"]

    refused = call(*migrate)
    assert (refused.code, f"{target.name} at" in refused.err, "say --yes" in refused.err) == (2, True, True)
    checked = call(*migrate, "--check")
    assert (checked.code, checked.out.startswith("replace: ")) == (0, True)
    assert not QueuedJob.objects.exists()

    assert call(*migrate, "--yes", "--staged").code == 0
    payload = QueuedJob.objects.get().payload
    assert (payload["mode"], payload["flags"]["staged"]) == ("replace", True)


def test_source_and_target_may_not_be_the_same(call: Call, shop: Target) -> None:
    url = shop.server.url(shop.name, RESTORER).replace("127.0.0.1", "localhost")

    said = call("enqueue_migration", "--from", "shop", "--to", "-", "--yes", stdin=url)

    assert (said.code, "the same database" in said.err) == (2, True)
    assert not QueuedJob.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--from", "nosuch", "--to", "shop"], "No database is called 'nosuch'"),
        (["--from", "shop", "--to", "postgresql://nobody"], "names no user"),
        (["--from", "shop", "--to", "shop", "--as", "copy", "--jobs", "4"], "choose staged"),
        (
            ["--from", "shop", "--to", "shop", "--as", "copy", "--dump-data-only", "--dump-schema-only"],
            "exclude",
        ),
    ],
)
def test_refusals_queue_nothing(call: Call, shop: Target, arguments: list[str], expected: str) -> None:
    said = call("enqueue_migration", *arguments)

    assert said.code == 2
    assert expected in said.err
    assert not QueuedJob.objects.exists()
