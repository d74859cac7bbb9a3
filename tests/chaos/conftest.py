"""The soak takes a quarter of an hour: only `-m chaos` collects it (`make chaos`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.conftest import slow_source as slow_source
from tests.worker.paused import shop as shop


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if config.option.markexpr == "chaos" else True
