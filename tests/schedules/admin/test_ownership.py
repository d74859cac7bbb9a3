"""Schedules of somebody else do not exist: no page shows them and no request changes them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import ActivityEvent, QueuedJob
from schedules.models import Schedule, ScheduleStorage
from schedules.plans import Target
from tests.admin.conftest import Belongings, browser
from tests.schedules.admin.conftest import ADD, LIST, form_of, planned, step_of

NOBODYS = "00000000-0000-4000-8000-000000000000"
PAGES = ("change", "edit", "delete", "history")
STEPS = ("edit", "enable", "run", "clone", "delete")


def snapshot() -> list[dict[str, Any]]:
    kinds: list[Any] = [Schedule, ScheduleStorage, QueuedJob, ActivityEvent]
    return [row for kind in kinds for row in kind.objects.order_by("pk").values()]


def test_pages_of_somebody_else_are_missing_like_those_of_nobody(nightly: Schedule, eve: Belongings) -> None:
    for page in PAGES:
        url = step_of(nightly, page)
        for address in (url, url.replace(str(nightly.pk), NOBODYS)):
            response = eve.client.get(address)
            missing = response.status_code == 404 or response.headers.get("Location") == "/admin/"
            assert missing, address


def test_no_request_changes_what_is_somebody_elses(nightly: Schedule, eve: Belongings) -> None:
    form = form_of(eve, f"{ADD}?database={eve.database.pk}").sent(name="mine", enabled="no", word="nightly")
    before = snapshot()
    for step in STEPS:
        assert eve.client.post(step_of(nightly, step), form).status_code == 404, step
    preview = eve.client.post(f"{LIST}preview/", form | {"schedule": str(nightly.pk)})
    assert preview.status_code == 404
    for action in ("enable", "disable", "run_now"):
        eve.client.post(LIST, {"action": action, "_selected_action": [nightly.pk]})
    assert snapshot() == before


def test_lists_and_forms_show_only_ones_own(nightly: Schedule, ada: Belongings, eve: Belongings) -> None:
    planned(eve, "theirs")
    like = f"{ADD}?like={nightly.pk}&database={ada.database.pk}"
    for url in (LIST, "/admin/", like):
        text = eve.client.get(url).content.decode()
        assert "nightly" not in text, url
        assert ada.storage.name not in text, url
        assert ada.database.name not in text, url
    assert "theirs" in eve.client.get(LIST).content.decode()
    assert "30 2 * * *" not in eve.client.get(like).content.decode()


def test_databases_and_storages_of_somebody_else_cannot_be_chosen(ada: Belongings, eve: Belongings) -> None:
    form = form_of(eve, ADD)
    for changed in (
        {"database": str(ada.database.pk)},
        {"database": str(eve.database.pk), "storages__0__storage": str(ada.storage.pk)},
    ):
        assert eve.client.post(ADD, form.sent(**{"name": "mine"} | changed)).status_code == 400, changed
    assert not Schedule.objects.exists()


def test_a_superuser_works_with_the_rights_of_the_owner(
    ada: Belongings, eve: Belongings, root: Client
) -> None:
    made = planned(ada, storages=[Target(ada.storage)])
    assert "nightly" in root.get(LIST).content.decode()
    url = step_of(made, "edit")
    text = root.get(url).content.decode()
    assert "store-ada" in text
    assert "store-eve" not in text
    form = form_of(ada, url)
    foreign = root.post(url, form.sent(storages__0__storage=str(eve.storage.pk)))
    assert foreign.status_code == 400
    assert root.post(url, form.sent(name="by root")).status_code == 302
    changed = Schedule.objects.get()
    assert (changed.name, changed.user) == ("by root", ada.user)


def test_what_a_superuser_makes_belongs_to_the_owner_of_the_database(ada: Belongings, root: Client) -> None:
    form = form_of(ada, f"{ADD}?database={ada.database.pk}")
    root.post(ADD, form.sent(name="for ada"))
    assert Schedule.objects.get().user == ada.user


@pytest.mark.parametrize("page", PAGES)
def test_every_page_asks_for_a_login(nightly: Schedule, page: str) -> None:
    for url in (step_of(nightly, page), LIST, ADD, f"{LIST}reading/", f"{LIST}preview/"):
        response = Client().get(url)
        assert "/admin/login/" in response.headers["Location"], url


def test_a_post_without_the_csrf_token_does_nothing(nightly: Schedule, ada: Belongings) -> None:
    strict = browser(ada.user, enforce_csrf_checks=True)
    before = snapshot()
    for url in (*(step_of(nightly, step) for step in STEPS), ADD, f"{LIST}preview/"):
        assert strict.post(url, {"word": "nightly", "enabled": "no"}).status_code == 403, url
    assert snapshot() == before


def test_steps_are_not_taken_by_following_a_link(nightly: Schedule, ada: Belongings) -> None:
    before = snapshot()
    for step in ("enable", "run", "clone"):
        assert ada.client.get(step_of(nightly, step)).status_code == 405, step
    assert snapshot() == before
