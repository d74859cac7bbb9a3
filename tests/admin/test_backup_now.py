from __future__ import annotations

from typing import Any

import pytest

from jobs.admin.backup_form import BackupForm
from jobs.admin.option_form import initial_values
from jobs.models import BackupJob, QueuedJob
from jobs.pgtools.flags import FIELDS, DumpFlags
from tests.admin.conftest import Belongings, stored_backup

DEFAULT = {"format": "custom", "jobs": "1", "lock_wait_timeout": "60"}


def queued(ada: Belongings) -> list[QueuedJob]:
    return list(QueuedJob.objects.exclude(pk=ada.waiting.pk).order_by("created_at"))


def url_of(ada: Belongings) -> str:
    return f"/admin/jobs/database/{ada.database.pk}/backup/"


def test_the_form_offers_every_option_with_its_meaning(ada: Belongings) -> None:
    response = ada.client.get(url_of(ada))
    for field in FIELDS:
        assert f'name="{field.name}"' in response.content.decode(), field.name
    groups = list(response.context["form"].groups())
    assert [group.is_open for group in groups] == [True, False, False, False]


def test_pressing_the_button_queues_a_full_backup(ada: Belongings) -> None:
    response = ada.client.post(url_of(ada), DEFAULT, follow=True)
    (job,) = queued(ada)
    assert job.payload["flags"] == {}
    assert job.user == ada.user
    page = response.content.decode()
    assert f"A backup of {ada.database.name} is queued." in page
    assert f"/admin/jobs/backupjob/{job.pk}/change/" in page


def test_flags_reach_the_job_as_given(ada: Belongings) -> None:
    given: dict[str, Any] = {
        "format": "directory", "jobs": "4", "compress": "gzip:9", "large_objects": "no", "no_owner": "on",
        "exclude_tables": "public.logs\r\n\r\n  audit.*  ", "section": ["pre-data", "data"],
        "lock_wait_timeout": "0", "storage": str(ada.storage.pk),
    }  # fmt: skip
    ada.client.post(url_of(ada), given)
    (job,) = queued(ada)
    assert job.payload["storage_id"] == str(ada.storage.pk)
    assert job.payload["flags"] == {
        "format": "directory", "jobs": 4, "compress": "gzip:9", "large_objects": False, "no_owner": True,
        "exclude_tables": ["public.logs", "audit.*"], "section": ["pre-data", "data"], "lock_wait_timeout": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"jobs": "4"}, "dumping in parallel needs format directory"),
        ({"data_only": "on", "schema_only": "on"}, "exclude each other"),
        ({"compress": "bzip2"}, "bzip2"),
        ({"format": "tape"}, "Select a valid choice"),
        ({"jobs": "1000"}, "less than or equal to 64"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    ada: Belongings, changed: dict[str, Any], reason: str
) -> None:
    response = ada.client.post(url_of(ada), DEFAULT | changed)
    assert response.status_code == 400
    assert reason in response.content.decode()
    assert queued(ada) == []


def test_a_group_with_something_in_it_is_open(ada: Belongings) -> None:
    form = BackupForm([ada.database], initial={"no_comments": True})
    assert [group.title for group in form.groups() if group.is_open] == ["", "Advanced"]


def test_flags_of_an_earlier_backup_come_back_the_same(ada: Belongings) -> None:
    flags = {"format": "plain", "large_objects": True, "tables": ["a.b", "c.d"], "section": ["data"]}
    earlier = stored_backup(ada.database, ada.storage, flags=flags)
    form = ada.client.get(f"{url_of(ada)}?like={earlier.pk}").context["form"]
    data = {name: form[name].value() for name in form.fields if form[name].value() not in (None, False)}
    again = BackupForm([ada.database], data)
    assert again.is_valid(), again.errors
    assert again.cleaned_data["given"] == DumpFlags.from_dict(flags).to_dict()
    assert initial_values(FIELDS, {"gone": 1}) == {}


def test_several_databases_are_backed_up_by_one_form(ada: Belongings, eve: Belongings) -> None:
    chosen = {"action": "back_up_now", "_selected_action": [ada.database.pk]}
    response = ada.client.post("/admin/jobs/database/", chosen)
    assert ada.client.post(response.headers["Location"], DEFAULT).status_code == 302
    assert len(queued(ada)) == 2  # eve's waiting one, and this
    both = f"/admin/jobs/database/backup/?ids={ada.database.pk},{eve.database.pk}"
    assert ada.client.post(both, DEFAULT).status_code == 404


def test_a_waiting_job_is_shown_above_the_history_and_at_its_backups_address(ada: Belongings) -> None:
    page = ada.client.get("/admin/jobs/backupjob/").content.decode()
    assert str(ada.waiting.pk) in page
    response = ada.client.get(f"/admin/jobs/backupjob/{ada.waiting.pk}/change/")
    assert response.headers["Location"] == f"/admin/jobs/queuedjob/{ada.waiting.pk}/change/"
    BackupJob.objects.create(id=ada.waiting.pk, user=ada.user, database_name="x", status="running")
    assert ada.client.get(f"/admin/jobs/backupjob/{ada.waiting.pk}/change/").status_code == 200
