"""A real browser, a real web server and a real worker on the test database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from pytest_django.fixtures import Settings

from pgbr.ports import free_port
from tests.waiting import until
from tests.workers import CHECKOUT, process_environment

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


class Site:
    """A running gunicorn; `manage` runs a command of the same instance and returns its stdout."""

    def __init__(self, log: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "gunicorn",
                    "--config",
                    "gunicorn.conf.py",
                    "--bind",
                    f"127.0.0.1:{port}",
                ],
                cwd=CHECKOUT,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        until(self._answers, "the web server answers")

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=self._environment(), capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def _environment(self) -> dict[str, str]:
        return process_environment(BASE_URL=self.url, DJANGO_SETTINGS_MODULE="pgbr.settings")

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        try:
            return bool(urllib.request.urlopen(f"{self.url}/api/health", timeout=1).status == 200)
        except OSError:
            return False


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[Site]:
    running = Site(tmp_path / "web.log")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, env={"HOME": home, "PATH": os.defpath}
        )
        yield browser
        browser.close()


OpenPage = Callable[..., Page]


@pytest.fixture(autouse=True)
def real_hashes(settings: Settings) -> None:
    """The site of these tests runs with the real settings: a quick hash would not let its user in."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]


def _bad(line: ConsoleMessage) -> bool:
    """Chrome's hints on style ("verbose") are no complaints."""
    return line.type in ("error", "warning")


@pytest.fixture
def open_page(chromium: Browser, site: Site) -> Iterator[OpenPage]:
    """A page of a fresh profile: `open_page(width, scheme)`. At the end nothing may have complained: no
    violation of the Content-Security-Policy, no error on the console, no answer of 400 or more."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def start(width: int, scheme: str) -> Page:
        viewport: Any = {"width": width, "height": 844}
        context = chromium.new_context(base_url=site.url, viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
        page.on("console", lambda line: complaints.append(f"{page.url}: {line.text}") if _bad(line) else None)
        page.on(
            "response",
            lambda got: complaints.append(f"{got.url}: {got.status}") if got.status >= 400 else None,
        )
        return page

    yield start
    for context in contexts:
        context.close()
    assert complaints == []
