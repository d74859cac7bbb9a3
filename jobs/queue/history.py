"""The history row of a job, written under the lock of its queue row (or before that row can be claimed).

The queue row alone is enough to make one: what a payload lacks or has in the wrong shape is left empty, so
that a job whose payload is nonsense still ends with a row that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.db.models.functions import Now

from jobs.models import BackupJob, Database, Upload
from jobs.models.history import HISTORY, Status
from jobs.queue.rows import QueueRow, storable


def start(job: QueueRow) -> None:
    """Running, from now on. Taken up again, the row starts anew and keeps nothing of the earlier try."""
    _write(job, _blank() | {"status": Status.RUNNING, "started_at": Now()})


def put_back(job: QueueRow) -> None:
    """Waiting again, if it was ever started."""
    HISTORY[job.queue].objects.filter(id=job.id).update(**_blank(), status=Status.PENDING)


def finalise(job: QueueRow, status: Status, error: str | None, **values: Any) -> None:
    """The final verdict, with what the processor found out (columns of the queue's history table)."""
    kept = {name: _storable(value) for name, value in values.items()}
    _write(job, {"status": status, "error": _storable(error), "completed_at": Now()} | kept)


def _storable(value: Any) -> Any:
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return storable(value) if isinstance(value, str) else value


def update(job: QueueRow, **values: Any) -> None:
    HISTORY[job.queue].objects.filter(id=job.id).update(**values)


def _blank() -> dict[str, Any]:
    return {"error": None, "progress": None, "completed_at": None, "log": "", "warnings": []}


def _write(job: QueueRow, values: Mapping[str, Any]) -> None:
    model = HISTORY[job.queue]
    if not model.objects.filter(id=job.id).update(**values):
        model.objects.create(**_identity(job), **values)


def _identity(job: QueueRow) -> dict[str, Any]:
    payload = job.payload if isinstance(job.payload, dict) else {}
    flags = payload.get("flags")
    row: dict[str, Any] = {
        "id": job.id,
        "user_id": job.user_id,
        "created_at": job.created_at,
        "flags": flags if isinstance(flags, dict) else {},
    }
    return row | _NAMED[job.queue](job, payload)


def _backup(job: QueueRow, payload: Mapping[str, Any]) -> dict[str, Any]:
    return _database(job, payload) | {
        "schedule_id": job.schedule_id,
        "slot": job.slot,
        "late": payload.get("late") is True,
    }


def _restore(job: QueueRow, payload: Mapping[str, Any]) -> dict[str, Any]:
    return _database(job, payload) | {
        "backup": _owned(BackupJob, job, payload.get("backup_id")),
        "upload": _owned(Upload, job, payload.get("upload_id")),
        "source_name": _text(payload, "source_name"),
        "mode": _text(payload, "mode")[:20],
        "target_name": _text(payload, "target_name"),
    }


def _migration(job: QueueRow, payload: Mapping[str, Any]) -> dict[str, Any]:
    return (
        _database(job, payload, "source_")
        | _database(job, payload, "target_")
        | {
            "mode": _text(payload, "mode")[:20],
            "target_name": _text(payload, "target_name"),
        }
    )


_NAMED = {"backup": _backup, "restore": _restore, "migration": _migration}


def _database(job: QueueRow, payload: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The database as registered now, else (it is gone) the name that the payload remembers."""
    found = _owned(Database, job, payload.get(f"{prefix}database_id"))
    name = found.name if isinstance(found, Database) else _text(payload, f"{prefix}database_name")
    return {f"{prefix}database": found, f"{prefix}database_name": name[:100]}


def _owned(model: type[Model], job: QueueRow, key: Any) -> Model | None:
    try:
        wanted = UUID(str(key))
    except ValueError:
        return None
    return model._default_manager.filter(id=wanted, user_id=job.user_id).first()


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""
