"""Lists searched through their query strings."""

from __future__ import annotations

import pytest

from jobs.models import Storage
from jobs.secrets import seal
from tests.admin.conftest import Belongings


@pytest.fixture
def of_the_instance(db: None) -> Storage:
    return Storage.objects.create(
        name="vault", endpoint="https://inside.test", access_key_id="AKIAINSTANCE", sealed_secret=seal("s")
    )


@pytest.mark.usefixtures("of_the_instance")
@pytest.mark.parametrize(
    "query",
    [
        "access_key_id__startswith=AKIA",
        "endpoint__contains=inside",
        "folder__startswith=/",
        "sealed_secret__startswith=g",
        "test_result__put__contains=x",
        "user__password__startswith=p",
        "origin=saved",
    ],
)
def test_what_a_page_hides_is_not_found_letter_by_letter(eve: Belongings, query: str) -> None:
    assert eve.client.get(f"/admin/jobs/storage/?{query}").status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "status__exact=%00",
        "status=%00",
        "database=%00",
        "database_name__regex=(",
        "status__regex=(a%2B)%2B$",
        "error__contains=x",
        "database__sealed_url__startswith=g",
        "user__password__startswith=p",
    ],
)
def test_no_query_gets_to_the_database_that_no_filter_makes(eve: Belongings, query: str) -> None:
    assert eve.client.get(f"/admin/jobs/backupjob/?{query}").status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "status__exact=completed",
        "pinned__exact=1",
        "created_at__gte=2026-01-01%2000:00:00%2B00:00",
        "created_at__isnull=True",
        "database=shop-eve",
        "q=shop",
        "o=1",
    ],
)
def test_the_filters_work(eve: Belongings, query: str) -> None:
    assert eve.client.get(f"/admin/jobs/backupjob/?{query}").status_code == 200
