"""What the pages of schedules share."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.options import ModelAdmin
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from jobs.admin.pages import REFUSALS as JOB_REFUSALS
from schedules.cron import CronError

# Raised with a message that is fit for the person in front of the page.
REFUSALS = (*JOB_REFUSALS, CronError)

LIST = "admin:schedules_schedule_changelist"
DETAIL = "admin:schedules_schedule_change"
ADD = "admin:schedules_schedule_add"


def url(step: str, schedule_id: Any) -> str:
    return reverse(f"admin:schedules_schedule_{step}", args=[schedule_id])


def page(
    owner: ModelAdmin[Any], request: HttpRequest, template: str, title: str, **context: Any
) -> TemplateResponse:
    shared = owner.admin_site.each_context(request) | {"opts": owner.opts, "title": title}
    return TemplateResponse(request, f"admin/schedules/{template}", shared | context)


def back(request: HttpRequest, otherwise: str) -> HttpResponseBase:
    """To the page of ours on which the button was."""
    came_from = request.headers.get("Referer", "")
    ours = url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure())
    return redirect(came_from if ours else otherwise)
