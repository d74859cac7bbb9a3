"""The supervisor over children of the tests' own, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.backoff import pause_after
from tests.waiting import until
from tests.workers import CHECKOUT, descendants, process_environment


class Supervised:
    def __init__(self, kind: str, log: Path) -> None:
        self.log = log
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.worker.supervised", kind],
                cwd=CHECKOUT,
                env=process_environment(SHUTDOWN_GRACE_SECONDS=2),
                stdout=file,
                stderr=file,
            )

    def lines(self, word: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if word in line]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


Supervise = Callable[[str], Supervised]


@pytest.fixture
def supervise(db: None, tmp_path: Path) -> Iterator[Supervise]:
    started: list[Supervised] = []

    def start(kind: str) -> Supervised:
        started.append(Supervised(kind, tmp_path / "log"))
        return started[-1]

    yield start
    for supervised in started:
        if supervised.process.poll() is None:
            for pid in [supervised.process.pid, *descendants(supervised.process.pid)]:
                os.kill(pid, signal.SIGKILL)
            supervised.process.wait()


def test_a_child_that_never_becomes_ready_is_killed_and_replaced(supervise: Supervise) -> None:
    supervised = supervise("silent")
    until(lambda: supervised.lines("ALIVE "), "its successor is up")
    assert "does not start: killed" in supervised.log.read_text()
    assert supervised.stop() == 0


def test_a_crashing_child_is_replaced_ever_more_slowly(supervise: Supervise) -> None:
    supervised = supervise("crashing")
    until(lambda: len(supervised.lines("next one in")) >= 3, "it has crashed three times")
    pauses = [float(line.split("next one in ")[1].split()[0]) for line in supervised.lines("next one in")]
    assert pauses[:3] == [0.5, 1.0, 2.0]
    assert supervised.stop() == 0


def test_a_successor_is_told_whom_it_replaces(supervise: Supervise) -> None:
    supervised = supervise("steady")
    first = until(lambda: supervised.lines("ALIVE "), "the child is up")[0].split()[1]
    os.kill(descendants(supervised.process.pid)[0], signal.SIGKILL)
    second = until(lambda: supervised.lines("ALIVE ")[1:], "its successor is up")[0].split()
    assert second[3] == first != second[1]
    assert supervised.stop() == 0


def test_the_end_of_a_stranger_is_not_mistaken_for_a_childs(supervise: Supervise) -> None:
    supervised = supervise("stranger")
    until(lambda: supervised.lines("ALIVE "), "the child is up")
    assert supervised.stop() == 0
    assert not supervised.lines("ended")
    assert len(supervised.lines("started the")) == 1


def test_a_second_signal_does_not_hurt_and_no_process_is_left(supervise: Supervise) -> None:
    supervised = supervise("steady")
    until(lambda: supervised.lines("ALIVE "), "the child is up")
    children = descendants(supervised.process.pid)
    supervised.process.send_signal(signal.SIGINT)
    assert supervised.stop() == 0
    assert not any(os.path.exists(f"/proc/{pid}") for pid in children)


@pytest.mark.parametrize(
    ("failures", "pause"), [(1, 0.2), (2, 0.4), (5, 3.2), (6, 5.0), (2000, 5.0), (10**9, 5.0)]
)
def test_pauses_double_up_to_the_longest_and_never_overflow(failures: int, pause: float) -> None:
    assert pause_after(failures) == pytest.approx(pause)
