"""What the processes of a worker cost, read from /proc (Linux). The tools they run are not counted."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

MB = 10**6
GROWTH_LIMIT = 60.0  # MB: what one backup may add to a worker that was idle
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PPID, UTIME = 1, 11  # places in `_stat`; after utime: stime, and both of the children that ended


@dataclass
class Memory:
    """MB (10**6 bytes) of each process by its pid.

    `pss` is what it has for itself and its share of what several have, so that the sum over a worker is what
    that worker costs; `peak` is the most it ever had resident, shared pages counted in full.
    """

    pss: dict[int, float] = field(default_factory=dict)
    peak: dict[int, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.pss.values())


@dataclass(frozen=True)
class Cpu:
    """Seconds: of the worker's own processes, and of the tools that have ended."""

    own: float
    tools: float

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.own - before.own, self.tools - before.tools)


def own_processes(supervisor: int) -> list[int]:
    """The supervisor and the processes it has forked. What those start in turn are tools."""
    found = [supervisor]
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if int(_stat(int(entry.name))[PPID]) == supervisor:
                found.append(int(entry.name))
    return found


def memory(pids: Iterable[int]) -> Memory:
    found = Memory()
    for pid in pids:
        with suppress(OSError):
            found.pss[pid] = _megabytes(pid, "smaps_rollup", "Pss:")
            found.peak[pid] = _megabytes(pid, "status", "VmHWM:")
    return found


def cpu(pids: Iterable[int]) -> Cpu:
    own = tools = 0.0
    for pid in pids:
        with suppress(OSError):
            times = _stat(pid)[UTIME : UTIME + 4]
            user, system, children_user, children_system = (int(value) / TICK for value in times)
            own, tools = own + user + system, tools + children_user + children_system
    return Cpu(own, tools)


def at_rest(pids: Sequence[int], *, seconds: float = 1.0, tolerance: float = 0.5) -> Memory:
    """Once the sum has not moved by more than `tolerance` MB for `seconds`."""
    last, since = memory(pids), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.1)
        current = memory(pids)
        if abs(current.total - last.total) > tolerance:
            last, since = current, time.monotonic()
    return last


class Watch:
    """The highest sum seen so far, and what it was made of."""

    def __init__(self, pids: Sequence[int], interval: float) -> None:
        self.highest = memory(pids)
        self.samples = 0
        self._pids = pids
        self._interval = interval
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._done.wait(self._interval):
            current = memory(self._pids)
            self.samples += 1
            if current.total > self.highest.total:
                self.highest = current

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()


@contextmanager
def watched(pids: Sequence[int], interval: float = 0.05) -> Iterator[Watch]:
    """Looks every `interval` seconds while inside."""
    watch = Watch(pids, interval)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, the state first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _megabytes(pid: int, file: str, name: str) -> float:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / MB
    raise OSError(f"/proc/{pid}/{file} has no {name}")
