from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.management import CommandError, call_command
from django.test import Client

PASSWORD = "a-long-passphrase"


def run(*arguments: str) -> str:
    output = StringIO()
    call_command("login_link", *arguments, stdout=output, stderr=StringIO())
    return output.getvalue().strip()


def path_of(link: str) -> str:
    assert link.startswith(f"{settings.BASE_URL}/login/")
    return link.removeprefix(settings.BASE_URL)


def use(link: str, client: Client | None = None, password: str = PASSWORD) -> Any:
    client = client or Client()
    page = client.get(path_of(link), follow=True)
    form = {"new_password1": password, "new_password2": password}
    return client.post(page.redirect_chain[-1][0] if page.redirect_chain else path_of(link), form)


def test_the_first_link_makes_the_superuser_and_logs_in(db: None) -> None:
    link = run()
    admin = User.objects.get()
    assert (admin.username, admin.is_superuser, admin.has_usable_password()) == ("admin", True, False)
    client = Client()
    assert use(link, client).headers["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200
    assert User.objects.get().check_password(PASSWORD)


def test_the_token_is_not_in_the_address_of_the_form(db: None) -> None:
    link = run()
    page = Client().get(path_of(link), follow=True)
    token = link.rstrip("/").rpartition("/")[2]
    assert token not in page.redirect_chain[-1][0]


def test_a_link_works_once(db: None) -> None:
    link = run()
    use(link)
    page = Client().get(path_of(link), follow=True)
    assert "This link does not work" in page.content.decode()
    use(link, password="another-passphrase")
    assert User.objects.get().check_password(PASSWORD)


def test_a_link_expires(db: None) -> None:
    link = run()
    later = datetime.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT + 60)
    with mock.patch.object(PasswordResetTokenGenerator, "_now", return_value=later):
        page = Client().get(path_of(link), follow=True)
    assert "This link does not work" in page.content.decode()


def test_a_weak_password_is_refused_with_the_reason(db: None) -> None:
    response = use(run(), password="short")
    assert "at least 10 characters" in response.content.decode()
    assert not User.objects.get().has_usable_password()


def test_asked_again_before_it_was_used_there_is_one_account(db: None) -> None:
    run()
    use(run())
    assert User.objects.count() == 1


def test_a_claimed_instance_says_by_whom_and_gives_no_link(db: None) -> None:
    use(run())
    said = run()
    assert "as admin" in said
    assert "/login/" not in said
    assert "--user admin" in said


def test_a_named_user_gets_a_reset_link(user: User) -> None:
    client = Client()
    use(run("--user", "ada"), client)
    user.refresh_from_db()
    assert user.check_password(PASSWORD)
    assert client.get("/admin/").status_code == 200


def test_unknown_and_disabled_users_are_refused(user: User) -> None:
    with pytest.raises(CommandError, match="Known: ada"):
        run("--user", "bob")
    link = run("--user", "ada")
    User.objects.update(is_active=False)
    with pytest.raises(CommandError, match="disabled"):
        run("--user", "ada")
    assert "This link does not work" in Client().get(path_of(link), follow=True).content.decode()


def test_an_ordinary_account_called_admin_is_not_raised(db: None) -> None:
    User.objects.create_user("admin", password=PASSWORD)
    with pytest.raises(CommandError, match="createsuperuser"):
        run()
    assert not User.objects.filter(is_superuser=True).exists()


def test_the_login_page_says_how_to_begin_until_somebody_has(db: None) -> None:
    assert "login_link" in Client().get("/admin/login/").content.decode()
    use(run())
    assert "login_link" not in Client().get("/admin/login/").content.decode()
