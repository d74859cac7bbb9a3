"""The page from which a backup or an upload is restored."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from jobs.admin.base import OwnedAdmin
from jobs.admin.option_form import initial_values
from jobs.admin.restore_flow import Flow, Forms, Initial, queued
from jobs.admin.restore_forms import RestoreOptions, RestoreTarget, for_format, preset_of
from jobs.admin.restore_source import Source
from jobs.models import BackupJob, RestoreJob, Upload
from jobs.pgtools.restore_options import RESTORE_FIELDS
from jobs.restoring import Check, RestoreOrder, check_restore, enqueue_restore
from jobs.services import visible_to
from jobs.targets import conninfo_for


class RestoreFlow(Flow):
    template = "restore/wizard.html"

    def __init__(self, owner: OwnedAdmin[Any], request: HttpRequest, source: Source) -> None:
        super().__init__(owner, request)
        self.source = source

    def answer(self) -> HttpResponseBase:
        return self._picked() if self.request.POST.get("step") == "pick" else super().answer()

    def make(self, data: Any = None, initial: Initial | None = None) -> Forms:
        values = initial or {}
        only = for_format(self.source.format)
        return {
            "target": RestoreTarget(self.source.row.user_id, data, initial=values.get("target")),
            "options": RestoreOptions(data, initial=values.get("options"), only=only),
        }

    def initial(self) -> Initial:
        """`?database=<id>` and `?like=<id of a restore>`."""
        earlier = self._earlier()
        if earlier is not None:
            target = {"database": earlier.database_id, "mode": earlier.mode, "name": earlier.target_name}
            return {"target": target, "options": initial_values(RESTORE_FIELDS, earlier.flags)}
        own = self.source.database
        target = {"database": self.request.GET.get("database") or (own.pk if own else None)}
        return {"target": target}

    def order(self, forms: Forms) -> RestoreOrder:
        target, row = forms["target"].cleaned_data, self.source.row
        database = target["database"]
        return RestoreOrder(
            database=database,
            mode=target["mode"],
            target_name=target["name"] or conninfo_for(database).dbname,
            flags=forms["options"].cleaned_data["given"],
            backup=row if isinstance(row, BackupJob) else None,
            upload=row if isinstance(row, Upload) else None,
        )

    def look(self, order: RestoreOrder) -> Check:
        return check_restore(order, by=self.by)

    def enqueue(self, order: RestoreOrder) -> HttpResponseBase:
        job_id = enqueue_restore(order, by=self.by)
        return queued(self.request, "restore", f"into {order.target_name}", "restorejob", job_id)

    def signed(self, order: RestoreOrder) -> dict[str, Any]:
        return {
            "source": str(self.source.row.pk),
            "database": str(order.database.pk),
            "mode": order.mode,
            "name": order.target_name,
            "flags": dict(order.flags),
        }

    def context(self, forms: Forms) -> dict[str, Any]:
        values = {bound.name: bound.value() for bound in forms["options"]}
        return {
            "title": f"Restore {self.source.name}",
            "source": self.source,
            "preset": preset_of(values),
            "has_presets": "no_owner" in values,
        }

    def _picked(self) -> HttpResponseBase:
        """What was ticked on the page of the contents; too long for an address, so it is posted."""
        sent = self.request.POST
        schemas, tables = sent.getlist("schemas"), sent.getlist("tables")
        if schemas and tables:  # pg_restore's own rule is: these tables in these schemas
            tables += [f"{schema}.*" for schema in schemas]
            schemas = []
            messages.warning(
                self.request, "With single tables chosen, a whole schema brings its tables only."
            )
        picked = {"schemas": schemas, "tables": tables}
        if not any(picked.values()):
            messages.error(self.request, "Tick what is to be restored.")
            return redirect(self.source.contents)
        values = self.initial()
        mode = sent.get("mode", "")
        values["target"] |= {"mode": mode, "name": sent.get("name", "") if mode == "new" else ""}
        return self.show(self.make(initial=values | {"options": initial_values(RESTORE_FIELDS, picked)}))

    def _earlier(self) -> RestoreJob | None:
        try:
            like = UUID(self.request.GET.get("like", ""))
        except ValueError:
            return None
        return visible_to(self.by, RestoreJob.objects.filter(pk=like)).first()


def restore_row(owner: OwnedAdmin[Any], request: HttpRequest, object_id: UUID) -> HttpResponseBase:
    """The page that restores the backup or upload `object_id` of `owner`."""
    source = Source(owner.find(request, object_id))
    if not source.usable:
        messages.error(request, f"Nothing is stored of the {source.in_words}.")
        return redirect(source.page)
    return RestoreFlow(owner, request, source).answer()
