"""A target's server that takes what it is sent and does not answer."""

from __future__ import annotations

import subprocess
import sys

from tests.abuse.fakepostgres import FakePostgres

# Beside the thread that cancels, another one must be able to work; in a process that can be given up, since
# one in which no thread runs cannot even be interrupted.
CANCELLING = """
import sys, threading, psycopg
from jobs.processors.at_target import sessions
sessions.CANCEL_SECONDS = 1.0
session = psycopg.connect(sys.argv[1], autocommit=True)
def wait():
    try:
        session.execute("SELECT 1")
    except psycopg.Error:
        pass
threading.Thread(target=wait, daemon=True).start()
cancelling = threading.Thread(target=sessions.cancel, args=[session])
cancelling.start()
turns = 0
while cancelling.is_alive():
    cancelling.join(0.01)
    turns += 1
print("turns", turns)
"""


def test_to_cancel_there_holds_no_other_thread() -> None:
    with FakePostgres({}, "hangs") as server:
        url = f"postgresql://u@127.0.0.1:{server.port}/x?sslmode=disable&gssencmode=disable"
        found = subprocess.run(
            [sys.executable, "-c", CANCELLING, url], capture_output=True, text=True, timeout=30, check=True
        )
    words, turns = found.stdout.split()
    assert words == "turns"
    assert int(turns) > 10
