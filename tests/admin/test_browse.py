"""What is in a backup, as a tree, and choosing from it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.admin.browse import MOST_SHOWN, quoted, scratch_name
from jobs.models import BackupJob
from jobs.pgtools.archive.contents import inspect
from jobs.pgtools.archive.select import selection
from tests.admin.conftest import Belongings, stored_backup
from tests.admin.forms import Form
from tests.admin.shop import Shop, dumped, make

AWKWARD = '"Büro"."sel""ect.*"'


@pytest.fixture
def shop(ada: Belongings) -> Shop:
    return make(ada)


def page_of(shop: Shop, url: str, data: dict[str, Any] | None = None) -> str:
    response = shop.client.get(url) if data is None else shop.client.post(url, data, follow=True)
    return str(response.content.decode())


def test_the_tree_shows_what_is_there(shop: Shop) -> None:
    page = page_of(shop, shop.contents)
    for shown in ("made by pg_dump 17", "Büro", "items", "1 index, 1 constraint", "1 view", "dear",
                  "1 function", "answer"):  # fmt: skip
        assert shown in page, shown
    assert "<b>bold" not in page


def test_tables_are_found_by_their_name(shop: Shop) -> None:
    page = page_of(shop, f"{shop.contents}?q=ITEM")
    assert 'value="&quot;public&quot;.&quot;items&quot;"' in page
    assert "sel&quot;ect" not in page
    assert "No table is called like that" in page_of(shop, f"{shop.contents}?q=nothing")


def test_what_was_ticked_goes_to_the_restore_and_means_just_that(shop: Shop) -> None:
    form = Form(page_of(shop, shop.contents))
    sent = form.sent(tables=[AWKWARD, '"public"."items"'], mode="new")
    wizard = Form(page_of(shop, shop.restore, sent))
    chosen = wizard.sent()
    assert chosen["tables"] == [f'{AWKWARD}\n"public"."items"']
    assert chosen["mode"] == ["new"]
    assert chosen["name"] == [scratch_name(shop.database.name)]
    checked = page_of(shop, shop.restore, wizard.sent("check"))
    assert "badge-stop" not in checked
    shop.client.post(shop.restore, Form(checked).sent("go"))
    (job,) = shop.jobs()
    toc = inspect(lambda start: iter([dumped()[start:]]), len(dumped())).toc
    assert toc is not None
    found = selection(toc, tables=job.payload["flags"]["tables"])
    assert found.unmatched == []
    names = {toc.by_id[dump_id].name for dump_id in found.ids if toc.by_id[dump_id].kind == "TABLE"}
    assert names == {'sel"ect.*', "items"}


def test_a_whole_schema_and_single_tables_go_together(shop: Shop) -> None:
    sent = Form(page_of(shop, shop.contents)).sent(
        tables=['"public"."items"'], schemas=['"Büro"'], mode="existing"
    )
    page = page_of(shop, shop.restore, sent)
    assert "brings its tables only" in page
    chosen = Form(page).sent()
    assert (chosen["tables"], chosen["schemas"]) == (['"public"."items"\n"Büro".*'], [""])
    assert (chosen["mode"], chosen["name"]) == (["existing"], [""])


def test_nothing_ticked_restores_nothing(shop: Shop) -> None:
    page = page_of(shop, shop.restore, Form(page_of(shop, shop.contents)).sent(mode="new"))
    assert "Tick what is to be restored." in page
    assert "Contents of" in page


def test_what_cannot_be_read_says_why(shop: Shop, ada: Belongings) -> None:
    for content in (b"GIF89a" * 100, b"PGDMP\x01\x0e"):
        broken = stored_backup(shop.database, ada.storage, content)
        response = shop.client.get(f"/admin/jobs/backupjob/{broken.pk}/contents/")
        assert response.status_code == 200
        assert "notice-bad" in response.content.decode()


def test_plain_sql_has_no_contents(shop: Shop, ada: Belongings) -> None:
    plain = stored_backup(shop.database, ada.storage, b"--\n-- PostgreSQL database dump\n--\n\nSELECT 1;\n")
    assert "restores as a whole" in page_of(shop, f"/admin/jobs/backupjob/{plain.pk}/contents/")
    BackupJob.objects.filter(pk=plain.pk).update(flags={"format": "plain"})
    assert "/contents/" not in page_of(shop, f"/admin/jobs/backupjob/{plain.pk}/change/")


def test_names_become_patterns_that_mean_them_alone() -> None:
    for name, pattern in (('a"b', '"a""b"'), ("a.b*", '"a.b*"'), ("a\nb", ""), ("", "")):
        assert quoted(name) == pattern
    assert len(scratch_name("ü" * 100).encode()) <= 63
    assert scratch_name("a\nb").startswith("ab_picked_20")


def test_a_page_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch, shop: Shop) -> None:
    monkeypatch.setattr("jobs.admin.browse.MOST_SHOWN", 2)
    page = page_of(shop, shop.contents)
    assert "Only the first 2 tables are shown" in page
    assert page.count('name="tables"') == 2
    assert MOST_SHOWN > 1000
