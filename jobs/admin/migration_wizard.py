"""The page from which a database is migrated to another server."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponseBase

from jobs.admin import migration_urls
from jobs.admin.migration_forms import (
    NOT_HERE,
    STAGED,
    STREAM,
    DumpOptions,
    MigrationTarget,
    SourceForm,
)
from jobs.admin.option_form import initial_values
from jobs.admin.restore_flow import Flow, Forms, Initial, queued
from jobs.admin.restore_forms import RestoreOptions, preset_of
from jobs.crypto import CannotDecrypt
from jobs.models import Database, MigrationJob
from jobs.pgtools.flags import FIELDS
from jobs.pgtools.restore_options import RESTORE_FIELDS
from jobs.restoring import Check, MigrationOrder, check_migration, enqueue_migration
from jobs.secrets import unseal
from jobs.services import visible_to
from jobs.targets import conninfo_for, parse


class MigrationFlow(Flow):
    template = "migration/wizard.html"

    def make(self, data: Any = None, initial: Initial | None = None) -> Forms:
        values = initial or {}
        return {
            "source": SourceForm(self.request, data, prefix="source", initial=values.get("source")),
            "target": MigrationTarget(self.request, data, prefix="target", initial=values.get("target")),
            "options": RestoreOptions(data, initial=values.get("options")),
            "dump": DumpOptions(data, prefix="dump", initial=values.get("dump")),
        }

    def initial(self) -> Initial:
        """`?source=<id>`, `?target=<id>` of databases, and `?like=<id of a migration>`."""
        earlier = self._earlier()
        if earlier is not None:
            return self._like(earlier)
        return {side: {"database": self.request.GET.get(side)} for side in ("source", "target")}

    def order(self, forms: Forms) -> MigrationOrder:
        target = forms["target"].cleaned_data
        end = target["end"]
        return MigrationOrder(
            source=forms["source"].cleaned_data["end"],
            target=end,
            mode=target["mode"],
            target_name=target["name"] or self._own_name(end),
            dump_flags=forms["dump"].cleaned_data["given"],
            restore_flags=forms["options"].cleaned_data["given"],
            staged=target["way"] == STAGED,
        )

    def look(self, order: MigrationOrder) -> Check:
        return check_migration(order, by=self.by)

    def enqueue(self, order: MigrationOrder) -> HttpResponseBase:
        job_id = enqueue_migration(order, by=self.by)
        migration_urls.forget(self.request)
        return queued(self.request, "migration", f"into {order.target_name}", "migrationjob", job_id)

    def signed(self, order: MigrationOrder) -> dict[str, Any]:
        return {
            "ends": [_identity(order.source), _identity(order.target)],
            "mode": order.mode,
            "name": order.target_name,
            "flags": [dict(order.dump_flags), dict(order.restore_flags)],
            "staged": order.staged,
        }

    def context(self, forms: Forms) -> dict[str, Any]:
        values = {bound.name: bound.value() for bound in forms["options"]}
        return {"title": "Migrate a database", "preset": preset_of(values), "has_presets": True}

    def _own_name(self, end: Database | str) -> str:
        conninfo = conninfo_for(end) if isinstance(end, Database) else parse(end, owner=self.by)
        return conninfo.dbname

    def _like(self, earlier: MigrationJob) -> Initial:
        flags = earlier.flags if isinstance(earlier.flags, dict) else {}
        dump, restore = (
            part if isinstance(part, dict) else {} for part in map(flags.get, ("dump", "restore"))
        )
        dump = {name: value for name, value in dump.items() if name not in NOT_HERE}
        way = STAGED if flags.get("staged") else STREAM
        target = {"mode": earlier.mode, "name": earlier.target_name, "way": way}
        return {
            "source": self._end(earlier.source_database_id, earlier.source_sealed_url),
            "target": self._end(earlier.target_database_id, earlier.target_sealed_url) | target,
            "options": initial_values(RESTORE_FIELDS, restore),
            "dump": initial_values(FIELDS, dump),
        }

    def _end(self, database_id: UUID | None, sealed: str) -> dict[str, Any]:
        """A URL of an earlier migration goes on being known to this session, and is not shown."""
        if database_id is not None or not sealed:
            return {"database": database_id}
        try:
            url = unseal(sealed, "The URL of the earlier migration")
        except CannotDecrypt:
            return {}
        return {"kept": migration_urls.keep(self.request, url)}

    def _earlier(self) -> MigrationJob | None:
        try:
            like = UUID(self.request.GET.get("like", ""))
        except ValueError:
            return None
        return visible_to(self.by, MigrationJob.objects.filter(pk=like)).first()


def _identity(end: Database | str) -> str:
    """Goes into a signature only, which tells nothing of it."""
    return str(end.pk) if isinstance(end, Database) else end
