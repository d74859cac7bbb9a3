"""Versions, formats and codecs: the few cases that go ways of their own; `make matrix` runs all of them."""

from __future__ import annotations

import pytest

from tests.restoring.cases import SOME, Comparison, Samples
from tests.restoring.conftest import Restores

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_and_definitions_come_back(restores: Restores, samples: Samples) -> None:
    comparison = Comparison(restores, samples)
    found = {str(case): comparison.run(case).differences for case in SOME}
    assert {case: differences for case, differences in found.items() if differences} == {}
