"""Deleting and the like on purpose: the page says what is lost and what stays, and asks for a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.options import ModelAdmin
from django.http import HttpRequest, HttpResponseBase

from jobs.admin.pages import page


@dataclass(frozen=True)
class Plan:
    """What a deletion means. `word` must be typed; with `blocked` reasons nothing can be deleted.

    `verb` is on the button, `purpose` follows "Type <word> to", `steps` say what happens where it
    is not obvious.
    """

    title: str
    word: str
    lost: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    verb: str = "Delete"
    purpose: str = "delete for good"
    cannot: str = "This cannot be deleted now."
    unchanged: str = "Nothing was deleted."


def confirmed(
    owner: ModelAdmin[Any],
    request: HttpRequest,
    plan: Plan,
    destroy: Callable[[], HttpResponseBase],
    *,
    back: str,
) -> HttpResponseBase:
    """Ask; once the word has been typed, `destroy`."""
    typed = request.POST.get("word", "").strip()
    asked = request.method == "POST" and not plan.blocked
    if asked and typed == plan.word.strip():
        return destroy()
    wrong = asked and typed != plan.word.strip()
    response = page(owner, request, "confirm_deletion.html", plan.title, plan=plan, back=back, wrong=wrong)
    response.status_code = 400 if wrong else 200
    return response
