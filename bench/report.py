"""Results as a Markdown table and as JSON, with what they were measured on."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def table(rows: Sequence[Any]) -> str:
    """A Markdown table of dataclass values of one kind, their fields as columns."""
    names = [field.name for field in fields(rows[0])]
    lines = [[str(getattr(row, name)) for name in names] for row in rows]
    heads = [name.replace("_", " ") for name in names]
    rule = ["---" if isinstance(getattr(rows[0], name), str) else "--:" for name in names]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *lines])


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as JSON, too")


def write_json(path: Path | None, results: Mapping[str, Any]) -> None:
    if path is not None:
        content = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), **results}
        path.write_text(json.dumps(content, indent=2, default=_as_json) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """`load`: of the last minute; far above 0 beside a benchmark's own means that the figures are noisy."""
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def _as_json(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
