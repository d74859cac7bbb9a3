"""Shorter waits in the processes of a worker. What has to outlast what still does."""

from datetime import timedelta

from django.apps import AppConfig

LEASE = 4.0


class Hasty(AppConfig):
    name = "tests.hasty"
    path = "tests"

    def ready(self) -> None:
        hurry()


def hurry() -> None:
    from jobs import deleting
    from jobs.copying import duty, lease
    from jobs.queue import connections
    from jobs.sweeping import strays
    from schedules import prune

    connections.IDLE_SECONDS = 5.0
    lease.LEASE_SECONDS, lease.RENEW_SECONDS = LEASE, LEASE / 6
    duty.FIRST_PAUSE, duty.LONGEST_PAUSE = 0.5, 2.0
    duty.DAMAGED_PAUSE = timedelta(seconds=5)
    deleting.WRITERS_NOTICE = timedelta(seconds=LEASE * 1.5)
    deleting.LEASE = timedelta(seconds=30)
    deleting.RETRY_FIRST, deleting.RETRY_LONGEST = 0.5, 3.0
    prune.AGAIN_AFTER_TROUBLE = timedelta(seconds=5)
    strays.OLD = timedelta(seconds=20)
