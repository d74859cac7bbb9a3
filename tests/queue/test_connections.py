"""What holds for every connection to our own database."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction
from django.db.utils import Error

from jobs.models import Storage
from jobs.queue import connections
from jobs.stores import default_storage

pytestmark = pytest.mark.django_db(transaction=True)


def test_who_freezes_in_a_transaction_loses_its_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    storage, holds, thaw = default_storage(), threading.Event(), threading.Event()
    errors: list[Error] = []

    def freeze() -> None:
        try:
            with transaction.atomic():
                Storage.objects.select_for_update().get(id=storage.id)
                holds.set()
                thaw.wait(20)
                Storage.objects.get(id=storage.id)
        except Error as error:
            errors.append(error)
        finally:
            connection.close()

    frozen = threading.Thread(target=freeze)
    frozen.start()
    try:
        assert holds.wait(20)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '15s'")
        assert Storage.objects.filter(id=storage.id).update(name="taken") == 1
    finally:
        thaw.set()
        frozen.join()
        connection.close()
    assert [connections.is_outage(error) for error in errors] == [True]


def test_a_minute_is_allowed() -> None:
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("1min",)
