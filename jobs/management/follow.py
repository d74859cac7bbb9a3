"""Waiting for a job: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.db.utils import InterfaceError, OperationalError

from jobs.management import listing
from jobs.management.listing import JobView
from jobs.management.text import duration, printable, size

LOOK_SECONDS = 0.3
LINE_SECONDS = 10.0
BAR_CELLS = 24
CLEAR = "\r\x1b[K"


class Stream(Protocol):
    """What Django's OutputWrapper offers."""

    def write(self, msg: str = "", style_func: Any = None, ending: str | None = None) -> None: ...

    def flush(self) -> None: ...


def follow(job_id: UUID, user: User, stream: Stream, *, terminal: bool, quiet: bool = False) -> JobView:
    """Wait for the job's end and return it; meanwhile `stream` tells how far it is (unless `quiet`).

    Nobody working on its queue is said once, not waited through in silence. An outage of the database is
    waited through. Raises `jobs.services.NotFound` when somebody deletes the job.
    """
    shown = _Silent() if quiet else _Bar(stream) if terminal else _Lines(stream)
    alone = False
    try:
        while True:
            view, alive = _look(user, job_id)
            if view is not None and view.ended:
                return view
            if view is not None:
                if not alive and not alone:
                    shown.remark(listing.no_worker(view.queue))
                alone = not alive
                shown.progress(view)
            else:
                shown.remark("pgbr's own database does not answer; still waiting.")
            time.sleep(LOOK_SECONDS)
    finally:
        shown.close()


def in_words(view: JobView) -> str:
    """How far a job is, in one line."""
    if view.status == "pending":
        return f"pending{f': {view.error}' if view.error else ''}"
    told = view.progress
    parts = [str(told.get("phase") or "running")]
    if isinstance(told.get("bytes"), int | float) and told["bytes"]:
        parts.append(size(int(told["bytes"])))
    if isinstance(told.get("rate"), int | float) and told["rate"]:
        parts.append(f"{size(int(told['rate']))}/s")
    if isinstance(told.get("eta"), int | float):
        parts.append(f"{duration(told['eta'])} left")
    if told.get("table"):
        parts.append(str(told["table"]))
    return printable(", ".join(parts))


def _look(user: User, job_id: UUID) -> tuple[JobView | None, bool]:
    """The job and whether its queue has a worker; (None, True) while the database is away."""
    try:
        connection.close_if_unusable_or_obsolete()
        view = listing.find(user, job_id)
        return view, view.status != "pending" or listing.worker_is_alive(view.queue)
    except (OperationalError, InterfaceError):
        connection.close()
        return None, True


def _plain(text: str) -> str:
    return text


class _Silent:
    def progress(self, view: JobView) -> None:
        pass

    def remark(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class _Lines(_Silent):
    """A line when something changes in kind, and one every LINE_SECONDS."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._kind: tuple[Any, ...] = ()
        self._said = ""
        self._due = 0.0

    def progress(self, view: JobView) -> None:
        kind = (view.status, view.progress.get("phase"), view.error)
        if kind == self._kind and time.monotonic() < self._due:
            return
        self._kind, self._due = kind, time.monotonic() + LINE_SECONDS
        share = _share(view.progress)
        self.remark((f"{share:.0%} " if share is not None else "") + in_words(view))

    def remark(self, text: str) -> None:
        if text != self._said:
            self._stream.write(text, _plain)
            self._stream.flush()
        self._said = text


class _Bar(_Silent):
    """One line of the terminal, drawn again and again."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._said = ""

    def progress(self, view: JobView) -> None:
        share = _share(view.progress)
        done = round(BAR_CELLS * (share or 0))
        bar = f"[{'#' * done}{'-' * (BAR_CELLS - done)}] {share or 0:4.0%} "
        line = (bar if share is not None else "") + in_words(view)
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(CLEAR + line[:width], _plain, "")
        self._stream.flush()

    def remark(self, text: str) -> None:
        if text != self._said:
            self._stream.write(CLEAR + text, _plain)
        self._said = text

    def close(self) -> None:
        self._stream.write(CLEAR, _plain, "")
        self._stream.flush()


def _share(progress: Mapping[str, Any]) -> float | None:
    share = progress.get("share")
    return min(1.0, max(0.0, float(share))) if isinstance(share, int | float) else None
