"""What the histories of restores and migrations share: both write into a target, and may keep the old one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse

from jobs import restoring
from jobs.admin import formats
from jobs.admin.base import account
from jobs.admin.deletion import Plan, confirmed
from jobs.admin.history import UNFINISHED, HistoryAdmin
from jobs.admin.pages import REFUSALS, step
from jobs.models import MigrationJob, RestoreJob
from jobs.rerunning import rerun_job

Writing = TypeVar("Writing", RestoreJob, MigrationJob)


class WritingAdmin(HistoryAdmin[Writing]):
    actions = ["cancel", "rerun"]

    @admin.display(description="how", ordering="mode")
    def how(self, row: Writing) -> str:
        return f"{row.mode}, undone" if row.undone_at else row.mode or formats.NOTHING

    def get_urls(self) -> list[URLPattern]:
        return [
            step(self, "undo", self.undo_view, post=False),
            step(self, "drop", self.drop_view, post=False),
            step(self, "again", self.again_view, post=False),
            step(self, "forget", self.forget_view, post=False),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        shown = {"kept": [Kept(row) for row in restoring.kept(account(request))]}
        return super().changelist_view(request, shown | (extra_context or {}))

    def undo_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        row = self.find(request, object_id)
        said = f"{row.target_name} is again what it was before."
        return self._decided(request, row, undoing(row), restoring.undo, said)

    def drop_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        row = self.find(request, object_id)
        return self._decided(request, row, dropping(row), restoring.drop_kept, f"{row.kept_name} is dropped.")

    def rerun_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        """Where it would replace or change data, the name is asked for once more."""
        row = self.find(request, object_id)
        if row.mode in ("replace", "existing"):
            return redirect(f"admin:jobs_{self.opts.model_name}_again", row.pk)
        return super().rerun_view(request, object_id)

    def again_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        row = self.find(request, object_id)
        said = f"A {self.opts.verbose_name} into {row.target_name} is queued with the same options."
        return self._decided(request, row, repeating(row), _again, said)

    def forget_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        row = self.find(request, object_id)
        return self._decided(
            request, row, forgetting(row), restoring.forget, "Deleted from the history.", back=self.list_of
        )

    def _decided(
        self,
        request: HttpRequest,
        row: Writing,
        plan: Plan,
        act: Callable[..., object],
        said: str,
        *,
        back: str = "",
    ) -> HttpResponseBase:
        page = reverse(self.page_of, args=[row.pk])

        def do() -> HttpResponseBase:
            try:
                act(row, by=account(request))
            except REFUSALS as error:
                messages.error(request, str(error))
                return redirect(page)
            messages.success(request, said)
            return redirect(back or page)

        return confirmed(self, request, plan, do, back=page)


def _again(row: RestoreJob | MigrationJob, *, by: User) -> None:
    rerun_job(row.pk, by=by, confirmed=True)


def target_in_words(registered: str, name: str) -> str:
    """ "shop", or "shop (shop_copy)" where the database there has another name."""
    return registered if not name or name == registered else f"{registered} ({name})"


def reached_through(row: RestoreJob | MigrationJob) -> str:
    """The registered database, or the address, by which the target's server is reached."""
    return row.database_name if isinstance(row, RestoreJob) else row.target_database_name


def _with_its_server(name: str, row: RestoreJob | MigrationJob) -> str:
    """Databases of different servers often have the same name."""
    where = reached_through(row)
    return name if where in ("", row.target_name) else f"{name} (reached as {where})"


def can_undo(row: RestoreJob | MigrationJob) -> bool:
    return can_drop(row) and row.undone_at is None


def can_drop(row: RestoreJob | MigrationJob) -> bool:
    return row.kept_name is not None and row.status not in UNFINISHED


def what_is_kept(row: RestoreJob | MigrationJob) -> str:
    """After an undo it is the restored one that lies aside."""
    if row.undone_at is None:
        return f"what {row.target_name} was before"
    return f"what was restored into {row.target_name}, before that was undone"


@dataclass(frozen=True)
class Kept:
    """A database that was replaced, for the list of them."""

    row: RestoreJob | MigrationJob

    @property
    def page(self) -> str:
        return self._url("change")

    @property
    def undo(self) -> str:
        return self._url("undo") if can_undo(self.row) else ""

    @property
    def drop(self) -> str:
        return self._url("drop") if can_drop(self.row) else ""

    @property
    def what(self) -> str:
        return what_is_kept(self.row)

    @property
    def where(self) -> str:
        return reached_through(self.row)

    def _url(self, step: str) -> str:
        return reverse(f"admin:jobs_{self.row._meta.model_name}_{step}", args=[self.row.pk])


def undoing(row: RestoreJob | MigrationJob) -> Plan:
    return Plan(
        title=f"Undo the {row._meta.verbose_name} into {row.target_name}",
        word=row.target_name,
        steps=[
            f"{_with_its_server(row.target_name, row)} becomes what it was before: "
            f"{row.kept_name} takes that name back.",
            "What was restored is set aside, with all that has been written to it since.",
            "Whoever is connected to either of them is sent away. It takes a few seconds.",
        ],
        blocked=[] if can_undo(row) else ["There is no replaced database to come back."],
        verb="Undo",
        purpose="swap the two",
        cannot="This cannot be undone.",
        unchanged="Nothing was changed.",
    )


def dropping(row: RestoreJob | MigrationJob) -> Plan:
    return Plan(
        title=f"Drop {row.kept_name or 'the kept database'}",
        word=row.kept_name or "",
        lost=[
            f"The database {_with_its_server(row.kept_name or '', row)}: {what_is_kept(row)}. It cannot be "
            "brought back."
        ],
        kept=[f"{row.target_name} is not touched, and backups stay."],
        blocked=[] if can_drop(row) else ["No replaced database is kept."],
        verb="Drop",
        purpose="drop it for good",
        cannot="This cannot be dropped.",
        unchanged="Nothing was dropped.",
    )


def repeating(row: RestoreJob | MigrationJob) -> Plan:
    kept = "The database that is there now is kept beside." if row.mode == "replace" else ""
    return Plan(
        title=f"Run the {row._meta.verbose_name} into {row.target_name} once more",
        word=row.target_name,
        steps=[f"{_with_its_server(row.target_name, row)} is changed once more ({row.mode}). {kept}".strip()],
        verb="Run again",
        purpose="run it once more",
        cannot="This cannot be run again.",
        unchanged="Nothing was done.",
    )


def forgetting(row: RestoreJob | MigrationJob) -> Plan:
    blocked = ["It has not ended yet: cancel it first."] if row.status in UNFINISHED else []
    if row.kept_name is not None:
        blocked.append(f"{row.kept_name} is still kept by it: undo it, or drop that database first.")
    return Plan(
        title=f"Delete the {row._meta.verbose_name} into {row.target_name} from the history",
        word=row.target_name,
        lost=["Its line in the history, with options, log and warnings."],
        kept=[f"{row.target_name} is not touched, and backups stay."],
        blocked=blocked,
    )
