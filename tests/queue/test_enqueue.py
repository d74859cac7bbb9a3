from __future__ import annotations

import psycopg
import pytest
from django.db import connection, transaction

from jobs.models import QueuedJob
from jobs.queue.notify import Listener
from tests.conftest import Enqueue
from tests.waiting import until
from tests.workers import database_url

pytestmark = pytest.mark.django_db(transaction=True)


class Rollback(Exception):
    pass


def test_a_request_that_is_rolled_back_enqueues_nothing(enqueue: Enqueue) -> None:
    def request() -> None:
        with transaction.atomic():
            enqueue()
            raise Rollback

    with pytest.raises(Rollback):
        request()
    assert QueuedJob.objects.count() == 0


def test_one_notification_a_statement_however_many_rows(enqueue: Enqueue) -> None:
    user = enqueue().user
    with psycopg.connect(database_url(), autocommit=True) as listening:
        listening.execute("LISTEN pgbr_jobs")
        QueuedJob.objects.bulk_create([QueuedJob(queue="restore", user=user, payload={}) for _ in range(30)])
        enqueue(queue="migration")
        payloads = [note.payload for note in listening.notifies(timeout=5, stop_after=2)]
    assert payloads == ["restore", "migration"]


def test_the_database_refuses_unknown_queues_and_statuses(enqueue: Enqueue) -> None:
    for columns in ({"queue": "other"}, {"status": "done"}, {"status": "active"}):
        with pytest.raises(Exception, match="violates check constraint"), transaction.atomic():
            enqueue(**columns)


def test_a_listener_hears_says_when_it_may_have_missed_something_and_comes_back(enqueue: Enqueue) -> None:
    listener = Listener("pgbr_jobs")
    assert listener.poll() == ([], True)
    enqueue()
    assert until(lambda: listener.poll()[0], "the notification arrives") == [("pgbr_jobs", "backup")]
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE query LIKE 'LISTEN%%' AND datname = current_database()"""
        )
    assert until(
        lambda: listener.poll()[1], "the listener is back and says that it may have missed something"
    )
    listener.close()
