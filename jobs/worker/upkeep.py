"""The process that looks after the whole house: duties by dotted path and interval (UPKEEP_DUTIES).

Those of one pace have a thread of their own, so that fast ones (reap, tick) never wait for slow ones (purge,
sweeps), nor either for somebody else's network (copies, pings).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.db.utils import Error
from django.utils.module_loading import import_string

from jobs import ending
from jobs.queue.connections import is_outage, refresh
from jobs.queue.reap import quiet
from jobs.worker import registry
from jobs.worker.registry import Identity
from jobs.worker.signals import WakePipe, leave_to_supervisor

LAST_SECONDS = 10.0
# A duty that comes rarely does not hold one of the server's connections meanwhile.
KEEP_CONNECTION_SECONDS = 2.0

log = logging.getLogger(__name__)


@dataclass
class Duty:
    name: str
    run: Callable[[], object]
    interval: float
    due: float = 0.0


class DutyLoop:
    """Runs its duties one after the other, each at its interval, until told to stop."""

    def __init__(self, duties: list[Duty]) -> None:
        self._duties = duties
        self._stop = threading.Event()
        self._away = False
        self._looked = time.time()

    def run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self.turn())
        connection.close()

    def stop(self) -> None:
        self._stop.set()

    def turn(self) -> float:
        """Run what is due; the seconds until the next duty is."""
        self._notice_absence()
        for duty in self._duties:
            if duty.due <= time.monotonic() and not self._stop.is_set():
                self._perform(duty)
        pause = max(0.0, min(duty.due for duty in self._duties) - time.monotonic())
        if pause > KEEP_CONNECTION_SECONDS:
            connection.close()
        return pause

    def _notice_absence(self) -> None:
        """After a stretch without a look at the house (outage, frozen machine), reap nothing at first.

        By the wall clock, like the database's: other clocks stand still while a machine sleeps, and do not
        jump when the time is set.
        """
        now = time.time()
        if now - self._looked > settings.STALE_SECONDS / 2 + max(d.interval for d in self._duties):
            quiet.after_reconnect()
        self._looked = now

    def _perform(self, duty: Duty) -> None:
        duty.due = time.monotonic() + duty.interval
        try:
            refresh()
            connection.ensure_connection()
            if self._away:
                self._away = False
                quiet.after_reconnect()
                log.info("the database is back")
            duty.run()
        except Error as error:
            self._failed(duty, error)
        except Exception:
            log.exception("upkeep duty %s failed", duty.name)

    def _failed(self, duty: Duty, error: Error) -> None:
        connection.close()
        if not is_outage(error):
            log.exception("upkeep duty %s failed", duty.name)
            return
        if not self._away:
            log.warning("no contact with the database: %s", str(error).strip())
        self._away = True
        duty.due = time.monotonic() + min(duty.interval, 1.0)


class UpkeepProcess:
    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        signs_of_life = Duty("heartbeat", self._beat, settings.HEARTBEAT_SECONDS)
        paces = _duties()
        paces.setdefault("fast", []).insert(0, signs_of_life)
        self._loops = [DutyLoop(duties) for duties in paces.values()]

    def run(self, ready: Callable[[], None]) -> None:
        """Until SIGTERM."""
        pipe = WakePipe(signal.SIGTERM)
        leave_to_supervisor()
        parent = os.getppid()
        threads = [threading.Thread(target=loop.run, daemon=True) for loop in self._loops]
        for thread in threads:
            thread.start()
        ready()
        while not pipe.wait(1.0) and os.getppid() == parent:
            pass
        ending.begin()
        for loop in self._loops:
            loop.stop()
        for thread in threads:
            thread.join(LAST_SECONDS)
        self._leave()

    def _beat(self) -> None:
        registry.beat(self.identity)

    def _leave(self) -> None:
        try:
            registry.leave(self.identity)
        except Error as error:
            log.warning("could not sign off: %s", str(error).strip())


def _duties() -> dict[str, list[Duty]]:
    """By pace."""
    paces: dict[str, list[Duty]] = {}
    for path, pace, interval in settings.UPKEEP_DUTIES:
        paces.setdefault(pace, []).append(Duty(path, import_string(path), float(interval)))
    return paces
