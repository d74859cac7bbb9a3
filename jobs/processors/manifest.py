"""What lies beside every artifact: enough to know and to restore it when pgbr itself is lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.progress import LARGE_OBJECTS
from jobs.processors.source import Source
from jobs.queue.rows import Job

FORMAT_VERSION = 1
MOST_TABLES = 5000


def manifest(
    job: Job,
    name: str,
    source: Source,
    flags: DumpFlags,
    *,
    key: str,
    size: int,
    sha256: str,
    globals_sql: bytes,
    instance: UUID,
    started_at: datetime,
    ended_at: datetime,
) -> dict[str, Any]:
    """JSON; `size` in bytes, times in ISO 8601. `database` is what a restore into a new one needs."""
    facts = source.facts
    return {
        "format_version": FORMAT_VERSION,
        "job_id": str(job.id),
        "instance": str(instance),
        "schedule_id": str(job.schedule_id) if job.schedule_id else None,
        "name": name,
        "database": {
            "dbname": facts.dbname,
            "encoding": facts.encoding,
            "collate": facts.collate,
            "ctype": facts.ctype,
            "locale_provider": facts.locale_provider,
            "locale": facts.locale,
            "owner": facts.owner,
            "settings": facts.database_settings,
            "extensions": facts.extensions,
            "bytes": facts.size_bytes,
            "tables": len(source.weights.keys() - {LARGE_OBJECTS}) if source.counted else None,
            "table_bytes": _largest(source.weights),
        },
        "server_version": facts.version,
        "client_version": source.toolset.label,
        "flags": flags.to_dict(),
        "compression": flags.compression(source.toolset),
        "artifact": {"key": key, "size": size, "sha256": sha256},
        "globals_sha256": hashlib.sha256(globals_sql).hexdigest() if globals_sql else None,
        "started_at": started_at.isoformat(),
        "ended_at": ended_at.isoformat(),
    }


def _largest(weights: Mapping[str, int]) -> dict[str, int]:
    """ "schema.table" -> bytes on the server, for those who browse the archive; it does not tell itself."""
    named = ((name, size) for name, size in weights.items() if name != LARGE_OBJECTS)
    return dict(sorted(named, key=lambda pair: (-pair[1], pair[0]))[:MOST_TABLES])


def as_bytes(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n"


def facts_as_json(source: Source) -> dict[str, Any]:
    return asdict(source.facts)
