from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from jobs.models import Storage, WorkerProcess
from jobs.stores import default_storage
from tests.admin.conftest import Belongings


@pytest.fixture
def workers(db: None) -> None:
    for queue in settings.PROCESSORS:
        WorkerProcess.objects.create(name=queue, host="h", pid=1, role=queue, concurrency=5)


@pytest.fixture
def broken_database(transactional_db: None) -> Iterator[None]:
    """Nothing listens where pgbr's database should be."""
    given = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update({"HOST": "127.0.0.1", "PORT": "1"})
    yield
    connection.close()
    connection.settings_dict.update(given)


def test_alive_asks_nothing_of_the_database(broken_database: None) -> None:
    assert Client().get("/api/health").json() == {"status": "ok"}


def test_ready_means_that_the_database_answers(db: None) -> None:
    assert Client().get("/api/ready").status_code == 200


def test_not_ready_says_why(broken_database: None) -> None:
    response = Client().get("/api/ready")
    assert response.status_code == 503
    assert "does not answer" in response.json()["reason"]


def test_status_needs_a_login_or_the_token(workers: None, settings: Any) -> None:
    client = Client()
    assert client.get("/api/status").status_code == 401
    assert client.get("/api/status", headers={"authorization": "Bearer "}).status_code == 401
    settings.METRICS_TOKEN = "token-for-metrics"
    for given, expected in (("wrong", 401), ("", 401), ("töken", 401), ("token-for-metrics", 200)):
        response = client.get("/api/status", headers={"authorization": f"Bearer {given}"})
        assert response.status_code == expected, given


def test_status_counts_the_workers_of_each_queue(ada: Belongings, workers: None) -> None:
    WorkerProcess.objects.create(name="2", host="h", pid=2, role="backup", concurrency=3)
    found = ada.client.get("/api/status")
    assert found.status_code == 200
    assert found.json()["queues"]["backup"] == {"workers": 2, "concurrency": 8}


@pytest.mark.parametrize("change", [{"heartbeat_at": Now() - timedelta(days=1)}, {"stopping": True}])
def test_status_is_down_without_a_living_worker(
    ada: Belongings, workers: None, change: dict[str, Any]
) -> None:
    WorkerProcess.objects.filter(role="backup").update(**change)
    response = ada.client.get("/api/status")
    assert response.status_code == 503
    assert "No worker takes backup jobs" in response.json()["problems"][0]


def test_status_is_down_when_the_default_storage_failed_its_test(ada: Belongings, workers: None) -> None:
    default = default_storage()
    Storage.objects.filter(pk=default.pk).update(
        test_result={"put": "disk full", "get": None}, tested_at=Now()
    )
    response = ada.client.get("/api/status")
    assert response.status_code == 503
    assert default.name in response.json()["problems"][0]


def test_status_names_only_storages_one_may_use(ada: Belongings, eve: Belongings, workers: None) -> None:
    names = [storage["name"] for storage in eve.client.get("/api/status").json()["storages"]]
    assert eve.storage.name in names
    assert ada.storage.name not in names
