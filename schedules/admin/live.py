"""What the form of a schedule asks while somebody types: answered with pieces of HTML.

The same pieces are in the page itself when its buttons are pressed without a script.
"""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from jobs.admin.base import account
from jobs.services import visible_to
from schedules.admin.parts import Maker
from schedules.admin.previewing import preview_of
from schedules.admin.timing import TimingForm
from schedules.models import Schedule


def reading(request: HttpRequest) -> HttpResponse:
    """What the fields of a TimingForm mean, or what is wrong with them."""
    form = TimingForm(request.GET)
    found = form.reading()
    return render(request, "schedules/reading.html", {"reading": found, "timing": form})


def preview(request: HttpRequest) -> HttpResponse:
    """The whole form is sent, with `schedule`: the id of the one that is changed."""
    maker = Maker(account(request), _schedule(request))
    parts = maker.sent(request.POST)
    if not parts.are_valid({"rows", "keeping"}):
        return render(request, "schedules/preview.html", {"wrong": parts})
    found = preview_of(maker.schedule, parts)
    return render(request, "schedules/preview.html", {"preview": found})


def _schedule(request: HttpRequest) -> Schedule | None:
    given = request.POST.get("schedule", "")
    if not given:
        return None
    try:
        wanted = UUID(given)
    except ValueError:
        raise Http404("There is no such schedule.") from None
    found = visible_to(account(request), Schedule.objects.filter(pk=wanted)).select_related("user").first()
    if found is None:
        raise Http404(f"There is no schedule {wanted}.")
    return found
