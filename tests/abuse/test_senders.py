"""Whose address counts: behind a proxy, without one, and with forged headers."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client

from dashboard.middleware import ClientAddress

PROXIES = ["10.0.0.0/8", "::1"]


def seen(forwarded: str, sender: str, proxies: list[str], settings: Any) -> tuple[str, bool]:
    """The client's address as views see it, and whether they see X-Forwarded-Proto."""
    settings.TRUSTED_PROXIES = proxies
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": sender, "HTTP_X_FORWARDED_PROTO": "https"}
    if forwarded:
        request.META["HTTP_X_FORWARDED_FOR"] = forwarded

    def view(request: HttpRequest) -> HttpResponseBase:
        return HttpResponse()

    ClientAddress(view)(request)
    return request.META["REMOTE_ADDR"], "HTTP_X_FORWARDED_PROTO" in request.META


@pytest.mark.parametrize(
    ("forwarded", "sender", "proxies", "expected"),
    [
        ("1.2.3.4", "10.0.0.1", PROXIES, ("1.2.3.4", True)),
        ("9.9.9.9, 1.2.3.4", "10.0.0.1", PROXIES, ("1.2.3.4", True)),
        ("1.2.3.4, 10.0.0.2", "10.0.0.1", PROXIES, ("1.2.3.4", True)),
        ("::ffff:1.2.3.4", "::1", PROXIES, ("1.2.3.4", True)),
        ("1.2.3.4, <script>", "10.0.0.1", PROXIES, ("10.0.0.1", True)),
        ("", "10.0.0.1", PROXIES, ("10.0.0.1", True)),
        ("1.2.3.4", "", PROXIES, ("1.2.3.4", True)),
        ("1.2.3.4", "5.6.7.8", PROXIES, ("5.6.7.8", False)),
        ("1.2.3.4", "127.0.0.1", [], ("127.0.0.1", False)),
    ],
)
def test_the_clients_address(
    forwarded: str, sender: str, proxies: list[str], expected: tuple[str, bool], settings: Any
) -> None:
    assert seen(forwarded, sender, proxies, settings) == expected


@pytest.mark.usefixtures("user")
def test_a_lock_out_meets_who_guesses_and_nobody_else_behind_the_proxy(settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]

    def login(password: str, sender: str) -> int:
        form = {"username": "ada", "password": password}
        # A forged address in front of the one that the proxy adds changes nothing.
        headers = {"X-Forwarded-For": f"{password}, {sender}"}
        return Client().post("/admin/login/", form, headers=headers).status_code

    guesses = [login(f"9.9.9.{number}", "1.2.3.4") for number in range(11)]
    assert guesses[-1] == 429
    assert login("correct horse battery", "5.6.7.8") == 302


@pytest.mark.parametrize("path", ["/admin/login/", "/static/admin/css/base.css", "/nothing", "/api/health"])
def test_the_policy_is_on_every_answer(db: None, path: str) -> None:
    assert "frame-ancestors 'none'" in Client().get(path).headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "target", ["https://evil.test/", "//evil.test", "/\\evil.test", "javascript:alert(1)"]
)
@pytest.mark.usefixtures("user")
def test_a_login_leads_nowhere_else(target: str) -> None:
    form = {"username": "ada", "password": "correct horse battery", "next": target}
    assert Client().post("/admin/login/", form).headers["Location"] == "/admin/"
