"""A pytest plugin, loaded before Django's settings: a state folder and an embedded server for this run."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# Short: a unix socket's path must fit into 107 bytes.
HOME = Path(os.environ.get("PGBR_TEST_HOME") or tempfile.mkdtemp(prefix="pgbr-t-", dir="/tmp"))
OURS = "PGBR_TEST_HOME" not in os.environ
# Backups and scratch of one process of pytest-xdist, so that what one test leaves is not another's.
STATE = HOME / os.environ.get("PYTEST_XDIST_WORKER", "main")

for name in set(os.environ) - {"PGBR_TEST_CACHE"}:
    if name.startswith(("STORAGE_", "PGBR_", "PG", "DATABASE_")):
        del os.environ[name]
# Set but empty: what a checkout's .env says is not for its tests.
for line in (CHECKOUT / ".env").read_text().splitlines() if (CHECKOUT / ".env").exists() else []:
    os.environ[line.partition("=")[0].strip()] = ""
# A run in the background of a shell ignores Ctrl-C, one under nohup SIGHUP, and so would all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ["PGBR_TEST_HOME"] = str(HOME)  # workers of pytest-xdist share the server of the first process
os.environ["PGBR_HOME"] = str(HOME)
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's sync API runs a loop in this thread


def _start() -> None:
    from pgbr import embedded
    from tests import servers

    HOME.chmod(0o755)
    embedded.SETTINGS["max_connections"] = "300"  # for twenty workers beside other tests
    embedded.ensure(HOME)
    if OURS:
        servers.open_session()
        atexit.register(_stop)


def _stop() -> None:
    from pgbr import embedded

    embedded.stop(HOME)
    shutil.rmtree(HOME, ignore_errors=True)


_start()
