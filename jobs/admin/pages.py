"""What the pages of our admin classes share: rendering, POST-only steps, a loop over chosen rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.options import ModelAdmin
from django.db.models import Model
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from jobs.crypto import CannotDecrypt
from jobs.pgtools.errors import PgToolsError
from jobs.services import ServiceError
from jobs.storage.base import StoreError

# Raised with a message that is fit for the person in front of the page.
REFUSALS = (ServiceError, PgToolsError, StoreError, CannotDecrypt)

View = Callable[..., HttpResponseBase]


def step(owner: ModelAdmin[Any], name: str, view: View, *, post: bool = True) -> URLPattern:
    """The URL `<id>/<name>/` of an object, called `<app>_<model>_<name>`."""
    label = f"{owner.opts.app_label}_{owner.opts.model_name}_{name}"
    guarded = owner.admin_site.admin_view(require_POST(view) if post else view)
    return path(f"<uuid:object_id>/{name}/", guarded, name=label)


def page(
    owner: ModelAdmin[Any], request: HttpRequest, template: str, title: str, **context: Any
) -> TemplateResponse:
    shared = owner.admin_site.each_context(request) | {"opts": owner.opts, "title": title}
    return TemplateResponse(request, f"admin/jobs/{template}", shared | context)


def chosen_ids(request: HttpRequest) -> list[UUID]:
    """The ids in `?ids=a,b`; what is no id is dropped."""
    found = []
    for part in request.GET.get("ids", "").split(","):
        try:
            found.append(UUID(part))
        except ValueError:
            continue
    return found


def for_each(
    request: HttpRequest,
    rows: Iterable[Model],
    act: Callable[[Any], object],
    done: str,
    *,
    names: str = "",
    what: str = "job",
) -> int:
    """Do it to every row, saying which ones refused and why, and how many did not (`done`: "cancelled")."""
    count = 0
    for row in rows:
        try:
            act(row)
        except REFUSALS as error:
            name = getattr(row, names) if names else row
            messages.error(request, f"{name}: {error}")
        else:
            count += 1
    if count:
        messages.success(request, f"1 {what} {done}." if count == 1 else f"{count} {what}s {done}.")
    return count
