"""The page that lists the databases of a connection's server and registers those that are chosen."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from jobs import discovery
from jobs.admin.base import OwnedAdmin, account
from jobs.admin.pages import REFUSALS, page
from jobs.models import Database


def discover(owner: OwnedAdmin[Database], request: HttpRequest, database: Database) -> HttpResponseBase:
    try:
        if request.method == "POST":
            return _register(request, database)
        found = discovery.discover(database, by=account(request))
    except REFUSALS as error:
        messages.error(request, f"{database.name}: {error}")
        return redirect("admin:jobs_database_change", database.pk)
    free = sum(one.free for one in found)
    title = f"Databases on the server of {database.name}"
    return page(
        owner, request, "database/discover.html", title, original=database, found=found, free=free,
        most=discovery.MOST_AT_ONCE,
    )  # fmt: skip


def _register(request: HttpRequest, database: Database) -> HttpResponseBase:
    by = account(request)
    names = request.POST.getlist("names")
    if not names and "all" not in request.POST:
        messages.error(request, "None was chosen: tick those to register.")
        return redirect("admin:jobs_database_discover", database.pk)
    if "all" in request.POST:
        free = [one.name for one in discovery.discover(database, by=by) if one.free]
        names = free[: discovery.MOST_AT_ONCE]
    made = discovery.register(database, names, by=by)
    if made:
        shown = ", ".join(row.name for row in made[:10]) + (" and more" if len(made) > 10 else "")
        words = "1 database is" if len(made) == 1 else f"{len(made)} databases are"
        messages.success(request, f"{words} registered: {shown}. Without a schedule nothing backs them up.")
    else:
        messages.info(request, "They are registered already.")
    return redirect("admin:jobs_database_changelist")
