"""The way of a restore or migration from a form over its check to the queue. Nothing here needs a script.

What was checked is signed into the page: whoever changes something afterwards gets a new check first. The
worker checks again, so a page that has grown old does no harm.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.contrib import messages
from django.core.signing import Signer
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.crypto import constant_time_compare

from jobs.admin.base import OwnedAdmin, account
from jobs.admin.option_form import OptionForm
from jobs.admin.pages import REFUSALS, page
from jobs.admin.restore_forms import ASKS, IN_WORDS, replaced, with_preset
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.restore_options import PRESET_LABELS
from jobs.restoring import Check

SALT = "jobs.admin.restore_flow"
LEVELS = ("stop", "warn", "ok")

Forms = dict[str, forms.Form]
Initial = dict[str, dict[str, Any]]  # a form's name -> values of its fields


@dataclass
class Verdict:
    """What a check found. `word` must be typed where something would be taken away; `failure` says why there
    is no check."""

    check: Check | None = None
    failure: str = ""
    mode: str = ""
    word: str = ""
    token: str = ""
    notes: list[str] = field(default_factory=list)
    wrong: bool = False

    @property
    def findings(self) -> list[Any]:
        found = self.check.findings if self.check else []
        return sorted(found, key=lambda finding: LEVELS.index(finding.level))

    @property
    def stops(self) -> bool:
        return self.check is None or self.check.stops

    @property
    def asks(self) -> bool:
        return self.mode in ASKS

    @property
    def in_words(self) -> str:
        return IN_WORDS.get(self.mode, self.mode)


class Flow(ABC):
    """One request. `Order` is what `jobs.restoring` takes."""

    template: str

    def __init__(self, owner: OwnedAdmin[Any], request: HttpRequest) -> None:
        self.owner = owner
        self.request = request
        self.by = account(request)

    @abstractmethod
    def make(self, data: Any = None, initial: Initial | None = None) -> Forms:
        """The forms by their names in the template ("target" and "options" among them): bound to `data`, or
        with `initial` values."""

    @abstractmethod
    def initial(self) -> Initial:
        """Of the first page."""

    @abstractmethod
    def order(self, forms: Forms) -> Any:
        """Of valid forms; its mode may be empty. Raises REFUSALS."""

    @abstractmethod
    def look(self, order: Any) -> Check:
        """An order without a mode is judged by the one that the check suggests. Raises REFUSALS."""

    @abstractmethod
    def enqueue(self, order: Any) -> HttpResponseBase:
        """Raises REFUSALS."""

    @abstractmethod
    def signed(self, order: Any) -> dict[str, Any]:
        """All that makes the order what it is, as JSON takes it."""

    @abstractmethod
    def context(self, forms: Forms) -> dict[str, Any]:
        """For the template, with a `title`."""

    def answer(self) -> HttpResponseBase:
        if self.request.method != "POST":
            return self._first()
        pressed = self.request.POST.get("step", "check")
        kind, _, what = pressed.partition(":")
        if kind == "preset":
            values = self._entered()
            values["options"] = with_preset(values["options"], what)
            return self._filled(values, check=bool(self.request.POST.get("checked")))
        made = self.make(self.request.POST)
        if not self._valid(made):
            return self.show(made)
        return self._go(made) if kind == "go" else self._check(made)

    def show(self, made: Forms, verdict: Verdict | None = None) -> HttpResponseBase:
        wrong = any(form.errors for form in made.values()) or (verdict is not None and verdict.wrong)
        shown: dict[str, Any] = {"verdict": verdict, "presets": PRESET_LABELS, "forms": made, **made}
        response = page(self.owner, self.request, self.template, **(shown | self.context(made)))
        response.status_code = 400 if wrong else 200
        return response

    def _first(self) -> HttpResponseBase:
        """`?check=1` checks what the page begins with at once."""
        return self._filled(self.initial(), check=bool(self.request.GET.get("check")))

    def _filled(self, values: Initial, *, check: bool) -> HttpResponseBase:
        made = self.make(initial=values)
        if not check:
            return self.show(made)
        sent = {bound.html_name: bound.value() for form in made.values() for bound in form}
        bound = self.make({name: value for name, value in sent.items() if value is not None})
        return self._check(bound) if self._valid(bound) else self.show(made)

    def _check(self, made: Forms, *notes: str) -> HttpResponseBase:
        try:
            verdict = self._verdict(made)
        except InvalidFlags as error:
            for problem in error.problems:
                self._options(made).blame(problem)
            return self.show(made)
        except REFUSALS as error:
            verdict = Verdict(failure=str(error))
        verdict.notes += notes
        return self.show(self._settled(made, verdict), verdict)

    def _verdict(self, made: Forms) -> Verdict:
        order = self.order(made)
        check = self.look(order)
        if not order.mode:
            order = replace(order, mode=check.suggested_mode)
        token = "" if check.stops else self._token(order)
        return Verdict(check, mode=order.mode, word=order.target_name, token=token)

    def _go(self, made: Forms) -> HttpResponseBase:
        try:
            order = self.order(made)
            if not constant_time_compare(self.request.POST.get("token", ""), self._token(order)):
                return self._check(made, "Something was changed since the last check, so this is a new one.")
            if order.mode in ASKS and self.request.POST.get("word", "") != order.target_name:
                return self._asked_again(made)
            return self.enqueue(order)
        except REFUSALS as error:
            messages.error(self.request, str(error))
            return self._check(made)

    def _asked_again(self, made: Forms) -> HttpResponseBase:
        verdict = self._verdict(made)
        verdict.wrong = True
        return self.show(made, verdict)

    def _settled(self, made: Forms, verdict: Verdict) -> Forms:
        """The same forms, saying how instead of "as fits"."""
        target = made["target"]
        mode, name = target.add_prefix("mode"), target.add_prefix("name")
        if not verdict.mode or target.data.get(mode) == verdict.mode:
            return made
        said = {mode: verdict.mode}
        if verdict.mode == "new" and not target.data.get(name):
            said[name] = verdict.word  # the one of the connection, which is not there any more
        settled = self.make(replaced(target.data, said))
        self._valid(settled)
        return settled

    def _entered(self) -> Initial:
        """What was sent, valid or not."""
        made = self.make(self.request.POST)
        return {
            key: {
                name: shown.widget.value_from_datadict(form.data, form.files, form.add_prefix(name))
                for name, shown in form.fields.items()
            }
            for key, form in made.items()
        }

    def _valid(self, made: Forms) -> bool:
        wrong = [form for form in made.values() if not form.is_valid()]  # each one says what is wrong with it
        return not wrong

    def _options(self, made: Forms) -> OptionForm:
        found = made["options"]
        assert isinstance(found, OptionForm)  # noqa: S101
        return found

    def _token(self, order: Any) -> str:
        said = json.dumps([self.by.pk, self.signed(order)], sort_keys=True)
        # Made here, not at import: where there is no key, the checks of the settings say so better.
        return Signer(salt=SALT).signature(said)


def queued(request: HttpRequest, kind: str, what: str, model: str, job_id: Any) -> HttpResponseBase:
    messages.success(request, f"A {kind} {what} is queued.")
    return redirect(f"admin:jobs_{model}_change", job_id)
