"""The page that restores: what it begins with, what it asks, and what it queues."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Database, QueuedJob, Upload
from jobs.pgtools.restore_options import FOR_SQL, RESTORE_FIELDS
from jobs.secrets import seal
from tests.admin.conftest import Belongings, stored_backup
from tests.admin.forms import Form
from tests.admin.shop import Shop, make


@pytest.fixture
def shop(ada: Belongings) -> Shop:
    return make(ada)


def page_of(client: Client, url: str, data: dict[str, Any] | None = None) -> str:
    return str((client.get(url) if data is None else client.post(url, data)).content.decode())


def checked(shop: Shop, **changed: Any) -> Form:
    """The form after its check, with some fields changed before."""
    first = Form(page_of(shop.client, shop.restore))
    return Form(page_of(shop.client, shop.restore, first.sent("check", **changed)))


def test_it_begins_with_the_backups_own_database_and_offers_every_option(shop: Shop) -> None:
    page = page_of(shop.client, shop.restore)
    sent = Form(page).sent()
    assert sent["database"] == [str(shop.database.pk)]
    assert all(f'name="{field.name}"' in page for field in RESTORE_FIELDS)
    assert shop.jobs() == []


def test_one_link_leads_to_a_checked_page_that_shows_the_target_and_asks_for_its_name(shop: Shop) -> None:
    page = page_of(shop.client, f"{shop.restore}?check=1")
    assert f"127.0.0.1:{shop.server.port}" in page
    for shown in ("Replace the database", f"<strong>{shop.name}</strong>", "3 tables", "badge-ok"):
        assert shown in page, shown
    assert Form(page).sent()["mode"] == ["replace"]
    assert shop.jobs() == []


def test_typing_the_name_queues_exactly_what_was_checked(shop: Shop) -> None:
    form = Form(page_of(shop.client, f"{shop.restore}?check=1"))
    response = shop.client.post(shop.restore, form.sent("go", word=shop.name))
    (job,) = shop.jobs()
    assert response.headers["Location"] == f"/admin/jobs/restorejob/{job.pk}/change/"
    wanted = {"mode": "replace", "target_name": shop.name, "flags": {}, "backup_id": str(shop.backup.pk)}
    assert {key: job.payload[key] for key in wanted} == wanted
    assert job.payload["database_id"] == str(shop.database.pk)


def test_without_the_right_name_nothing_is_queued(shop: Shop) -> None:
    form = checked(shop)
    for word in ("", shop.name.upper()):
        response = shop.client.post(shop.restore, form.sent("go", word=word))
        assert response.status_code == 400
        assert "That is not the name of the database" in response.content.decode()
    assert shop.jobs() == []


def test_what_was_changed_after_the_check_is_checked_anew(shop: Shop) -> None:
    form = checked(shop)
    page = page_of(shop.client, shop.restore, form.sent("go", word=shop.name, no_owner="on"))
    assert "Something was changed since the last check" in page
    assert shop.jobs() == []
    shop.client.post(shop.restore, Form(page).sent("go", word=shop.name))
    assert [job.payload["flags"] for job in shop.jobs()] == [{"no_owner": True}]


def test_without_a_check_nothing_is_queued(shop: Shop) -> None:
    first = Form(page_of(shop.client, shop.restore))
    shop.client.post(shop.restore, first.sent("go", mode="new", name="fresh"))
    shop.client.post(shop.restore, first.sent("go", mode="replace", word=shop.name, token="x"))
    assert shop.jobs() == []


def test_a_check_of_another_account_does_not_count(shop: Shop, root: Client) -> None:
    form = Form(page_of(root, f"{shop.restore}?check=1"))
    shop.client.post(shop.restore, form.sent("go", word=shop.name))
    assert shop.jobs() == []


def test_a_new_database_asks_for_no_name(shop: Shop) -> None:
    form = checked(shop, mode="new", name="fresh copy")
    assert "word" not in form.values
    shop.client.post(shop.restore, form.sent("go"))
    (job,) = shop.jobs()
    assert (job.payload["mode"], job.payload["target_name"]) == ("new", "fresh copy")


def test_what_stops_it_takes_the_button_away(shop: Shop) -> None:
    first = Form(page_of(shop.client, shop.restore))
    page = page_of(shop.client, shop.restore, first.sent("check", mode="empty"))
    assert "badge-stop" in page
    form = Form(page)
    assert ("step", "go") not in form.buttons
    assert form.buttons[0] == ("step", "check")
    shop.client.post(shop.restore, form.sent("go", word=shop.name))
    assert shop.jobs() == []


def test_the_enter_key_presses_what_comes_next(shop: Shop) -> None:
    """A browser takes the first button of the form."""
    first = Form(page_of(shop.client, shop.restore))
    assert first.buttons[0] == ("step", "check")
    assert checked(shop).buttons[0] == ("step", "go")


def test_presets_fill_the_form_and_keep_the_rest(shop: Shop) -> None:
    first = Form(page_of(shop.client, shop.restore))
    pressed = first.sent("preset:managed", role="owner", tables="a\nb")
    managed = Form(page_of(shop.client, shop.restore, pressed))
    sent = managed.sent()
    assert sent["no_owner"] == sent["no_extension_comments"] == ["on"]
    assert (sent["role"], sent["tables"]) == (["owner"], ["a\nb"])
    same = Form(page_of(shop.client, shop.restore, managed.sent("preset:same"))).sent()
    assert "no_owner" not in same
    assert same["role"] == ["owner"]
    assert shop.jobs() == []


def test_a_preset_chosen_after_the_check_is_checked_at_once(shop: Shop) -> None:
    form = checked(shop, mode="new", name="fresh")
    other = Form(page_of(shop.client, shop.restore, form.sent("preset:other")))
    shop.client.post(shop.restore, other.sent("go"))
    assert [job.payload["flags"] for job in shop.jobs()] == [{"no_owner": True, "no_privileges": True}]


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"data_only": "on", "schema_only": "on"}, "exclude each other"),
    ({"tables": '"open'}, "double quote that is not closed"),
    ({"jobs": "1000"}, "less than or equal to 64"),
    ({"mode": "new", "name": ""}, "A new database needs a name."),
    ({"mode": "new", "name": "ü" * 32}, "up to 63 bytes"),
    ({"mode": "sideways"}, "Select a valid choice"),
    ({"database": ""}, "This field is required"),
)


def test_what_does_not_go_together_is_refused_at_the_form(shop: Shop) -> None:
    first = Form(page_of(shop.client, shop.restore))
    for changed, reason in REFUSED:
        response = shop.client.post(shop.restore, first.sent("check", **changed))
        assert response.status_code == 400, changed
        assert reason in response.content.decode(), changed


def test_a_server_that_is_away_is_said_and_nothing_breaks(shop: Shop) -> None:
    Database.objects.filter(pk=shop.database.pk).update(sealed_url=seal("postgresql://a:b@127.0.0.1:1/x"))
    page = page_of(shop.client, f"{shop.restore}?check=1")
    assert "It could not be checked" in page
    assert "127.0.0.1:1" in page


def test_a_damaged_backup_is_said(shop: Shop, ada: Belongings) -> None:
    damaged = stored_backup(shop.database, ada.storage, b"PGDMP\x01\x0e\x00 and no more")
    page = page_of(shop.client, f"/admin/jobs/backupjob/{damaged.pk}/restore/?check=1")
    assert "It could not be checked" in page


def test_an_earlier_restore_is_run_with_changes(shop: Shop) -> None:
    flags = {"clean": True, "tables": ["a.b", "c.d"], "single_transaction": False, "keep_days": 0}
    earlier = shop.restored(mode="existing", flags=flags)
    sent = Form(page_of(shop.client, f"{shop.restore}?like={earlier.pk}")).sent()
    assert sent["mode"] == ["existing"]
    assert (sent["clean"], sent["tables"], sent["single_transaction"]) == (["on"], ["a.b\nc.d"], ["no"])
    assert (sent["keep_days"], sent["name"]) == (["0"], [shop.name])


def test_an_upload_names_no_target_by_itself(shop: Shop, ada: Belongings, eve: Belongings) -> None:
    upload = Upload.objects.create(
        user=ada.user, name="<b>x</b>.sql", storage=ada.storage, storage_key="k", state="good",
        facts={"format": "plain", "in_words": "<i>plain</i> SQL"},
    )  # fmt: skip
    for step in ("restore", "contents"):
        assert eve.client.get(f"/admin/jobs/upload/{upload.pk}/{step}/").status_code == 404
    page = page_of(ada.client, f"/admin/jobs/upload/{upload.pk}/restore/")
    assert Form(page).sent()["database"] == [""]
    assert "<b>x" not in page
    assert "<i>plain" not in page
    offered = {field.name for field in RESTORE_FIELDS if f'name="{field.name}"' in page}
    assert offered == FOR_SQL


def test_only_databases_of_the_backups_owner_are_offered(shop: Shop, eve: Belongings, root: Client) -> None:
    for client in (shop.client, root):
        page = page_of(client, shop.restore)
        assert shop.database.name in page
        assert eve.database.name not in page
    first = Form(page_of(shop.client, shop.restore))
    response = shop.client.post(shop.restore, first.sent("check", database=str(eve.database.pk)))
    assert response.status_code == 400


def test_a_database_is_restored_from_its_newest_good_backup(shop: Shop, ada: Belongings) -> None:
    link = f"/admin/jobs/database/{shop.database.pk}/restore/"
    assert ada.client.get(link).headers["Location"] == f"{shop.restore}?check=1"
    assert f"{shop.restore}?check=1" in page_of(ada.client, "/admin/")
    shop.backup.copies.update(state="failed")
    assert "has no good backup yet" in ada.client.get(link, follow=True).content.decode()
    assert "Nothing is stored" in ada.client.get(shop.restore, follow=True).content.decode()
    assert QueuedJob.objects.filter(queue="restore").count() == 0


def test_whoever_opens_it_twice_is_told_of_the_job_that_is_on_its_way(shop: Shop) -> None:
    form = Form(page_of(shop.client, f"{shop.restore}?check=1"))
    shop.client.post(shop.restore, form.sent("go", word=shop.name))
    (job,) = shop.jobs()
    page = page_of(shop.client, f"{shop.restore}?check=1")
    assert f"A restore into “{shop.name}” is queued already" in page
    assert str(job.pk) in page
    QueuedJob.objects.filter(pk=job.pk).update(status="completed")
    assert "already" not in page_of(shop.client, f"{shop.restore}?check=1")
