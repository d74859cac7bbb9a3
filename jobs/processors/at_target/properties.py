"""What belongs to the database itself: encoding and locale it is made with, settings, owner, comment,
grants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.archive.entry import Entry
from jobs.pgtools.archive.toc import Toc
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.script.errors import Interrupted
from jobs.pgtools.script.loader import Loader
from jobs.processors.at_target import creation
from jobs.processors.at_target.creation import Properties
from jobs.processors.at_target.landing import Landing
from jobs.processors.at_target.lock import Hold
from jobs.processors.control import Control

OF_DATABASE = "DATABASE "


def of_source(manifest: Mapping[str, Any], contents: Contents) -> Properties:
    """From the manifest, else from the archive's own list. Of plain SQL without a manifest nothing is
    known."""
    if manifest.get("encoding"):
        return Properties.from_manifest(manifest)
    found = contents.toc.database() if contents.toc is not None else None
    if found is None:
        return Properties()
    return Properties(found.encoding, found.locale_provider, found.collate, found.ctype, found.locale)


def owner_of_source(manifest: Mapping[str, Any], contents: Contents, flags: RestoreFlags) -> str:
    """Of a new database; "" where nobody knows, or where owners are not restored. The role for which
    everything is restored needs it to create anything in the schema public."""
    if not flags.restores_owners:
        return flags.role
    listed = contents.toc.entries if contents.toc is not None else ()
    owner = next((entry.owner for entry in listed if entry.kind == "DATABASE"), "")
    return owner or str(manifest.get("owner") or "")


def finish(
    hold: Hold,
    place: Landing,
    contents: Contents,
    settings: Mapping[str, Any],
    flags: RestoreFlags,
    mode: str,
    control: Control,
) -> list[str]:
    """Give a database that was restored beside the target what the source had of its own; what was refused.

    An archive's list has it as SQL, which is applied to the new name. Grants of a replaced database are
    taken from that one later.
    """
    if not place.beside or flags.selects or flags.data_only:
        return []
    if contents.toc is None:
        return creation.apply_settings(hold.orders, place.conninfo.dbname, settings)
    return _apply(hold, place, contents.toc, flags, mode, control)


def _apply(
    hold: Hold, place: Landing, toc: Toc, flags: RestoreFlags, mode: str, control: Control
) -> list[str]:
    texts = [entry.definition for entry in toc.entries if _is_wanted(entry, flags, mode)]
    if not texts:
        return []
    script = f"{_connect(toc.dbname)}\n" + "\n".join(texts)
    with hold.open(place.conninfo.dbname) as session:
        loader = Loader(
            session,
            target_name=place.conninfo.dbname,
            single_transaction=False,
            accept_errors=True,
            on_progress=_silent,
            stop=control.stopped,
        )
        try:
            result = loader.run(iter([script.encode()]), before_commit=lambda: None)
        except Interrupted:
            control.check()
            raise
    return [f"Of the database's own properties: {problem}" for problem in result.first]


def _connect(name: str) -> str:
    r"""Says whose properties follow. As pg_dump writes it: by itself "host=…" would be a whole address."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'").replace('"', '""')
    return f"\\connect -reuse-previous=on \"dbname='{escaped}'\""


def _silent(line: int, words: str) -> None:
    """It takes no time."""


def _is_wanted(entry: Entry, flags: RestoreFlags, mode: str) -> bool:
    if entry.kind == "DATABASE PROPERTIES":
        return True
    if not entry.name.startswith(OF_DATABASE):
        return False
    if entry.kind == "ACL":
        return mode == "new" and flags.restores_privileges
    return entry.kind == "COMMENT" and not flags.no_comments
