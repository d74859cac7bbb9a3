"""The form of a schedule in a real browser: what it means is read as it is typed."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from jobs.databases import register
from schedules.models import Schedule
from tests.e2e.conftest import OpenPage, Site

PASSWORD = "a-long-passphrase"


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """A new schedule, as ada sees it in New York."""
    opened = open_page(390, "dark")
    session = opened.context.new_cdp_session(opened)
    session.send("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})
    open_form(opened)
    return opened


def open_form(page: Page) -> None:
    ada = User.objects.create_user("ada", password=PASSWORD, is_staff=True)
    register(ada, "shop", "postgresql://app:secret@db.example.com/shop", by=ada)
    page.goto("/admin/schedules/schedule/add/")
    page.get_by_label("Username:").fill("ada")
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/schedule/add/")


def test_a_schedule_is_read_as_it_is_typed(page: Page) -> None:
    reading = page.locator(".reading")
    zone = page.get_by_label("Time zone")
    expect(zone).to_have_value("America/New_York")
    expect(reading).to_contain_text("in America/New_York")
    expect(reading.get_by_text("For you")).to_be_hidden()
    expect(page.get_by_role("button", name="Check")).to_be_hidden()

    page.get_by_role("radio", name="Weekly").check()
    page.get_by_label("Time of day").fill("02:30")
    expect(reading.locator("code")).to_have_text("30 2 * * 1")
    expect(reading.locator("tbody tr")).to_have_count(5)
    page.get_by_role("radio", name="Custom").check()
    expect(page.get_by_label("Cron expression")).to_have_value("30 2 * * 1")
    expect(page.get_by_label("Time of day")).to_be_hidden()

    page.get_by_label("Cron expression").fill("0 12 13 * fri")
    expect(reading).to_contain_text("Day of month and day of week are both set")
    page.get_by_label("Cron expression").fill("0 12 * * * *")
    expect(reading.locator(".problem")).to_contain_text("Cron expression:")
    page.get_by_label("Cron expression").fill("0 12 * * fri")
    zone.fill("Asia/Tokyo")
    expect(reading.get_by_text("For you, America/New_York")).to_be_visible()
    expect(reading.locator("tbody tr").first).to_contain_text("Fri")
    there, here = reading.locator("tbody tr").first.locator("td").all_inner_texts()[:2]
    assert "12:00 JST" in there
    assert here.startswith("Thu ")
    assert "22:00" in here or "23:00" in here

    page.get_by_label("Name", exact=True).fill("weekly")
    page.get_by_label("Database", exact=True).select_option(label="shop")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="weekly")).to_be_visible()
    made = Schedule.objects.get()
    assert (made.cron_expression, made.timezone) == ("0 12 * * fri", "Asia/Tokyo")


def test_storages_and_the_preview_and_the_switch(page: Page) -> None:
    page.get_by_role("button", name="Add a storage").click()
    expect(page.locator(".storage-row")).to_have_count(2)
    expect(page.get_by_label("Time zone")).to_have_value("America/New_York")
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("Database", exact=True).select_option(label="shop")
    page.get_by_role("button", name="Remove").last.click()
    page.get_by_label("Daily", exact=True).last.fill("7")
    page.get_by_role("button", name="What would be deleted now?").click()
    expect(page.get_by_role("status")).to_contain_text("Nothing would be deleted now.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("7 daily")).to_be_visible()

    page.goto("/admin/schedules/schedule/")
    switch = page.get_by_role("switch", name="nightly is enabled")
    switch.press("Enter")
    expect(page.get_by_role("switch", name="nightly is enabled")).not_to_be_checked()
    assert Schedule.objects.get().enabled is False


def test_without_a_script_buttons_do_the_same(chromium: Browser, site: Site) -> None:
    context = chromium.new_context(base_url=site.url, java_script_enabled=False)
    page = context.new_page()
    open_form(page)
    page.get_by_role("radio", name="Monthly").check()
    expect(page.get_by_label("Cron expression")).to_be_hidden()
    page.get_by_label("Day of the month").fill("31")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".reading code")).to_have_text("30 3 31 * *")
    page.get_by_role("button", name="Add a storage").click()
    page.get_by_role("button", name="What would be deleted now?").click()
    expect(page.locator(".preview")).to_contain_text("Nothing would be deleted now.")
    page.get_by_label("Database", exact=True).select_option(label="shop")
    page.get_by_label("Name", exact=True).fill("monthly")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_text("The schedule monthly is saved.")).to_be_visible()
    assert Schedule.objects.get().cron_expression == "30 3 31 * *"
    context.close()
