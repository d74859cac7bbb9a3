"""Versions, formats and codecs: the few cases that go ways of their own; `make matrix` runs all of them."""

from __future__ import annotations

import pytest

from tests.restoring.cases import SOME, Case, Comparison, Samples
from tests.restoring.conftest import Restores

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("case", SOME, ids=str)
def test_rows_and_definitions_come_back(restores: Restores, samples: Samples, case: Case) -> None:
    assert Comparison(restores, samples).run(case).differences == []
