"""Forms made from a list of a tool's options (`jobs.pgtools.options.Field`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from django import forms

from jobs.admin.widgets import NO_HELP
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.options import Field


class Flags(Protocol):
    """As `jobs.pgtools.flags.DumpFlags`: made by `from_dict`, which raises InvalidFlags."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Row:
    """One option in the form; `option` is what the tool calls it, empty for one that is ours."""

    bound: forms.BoundField
    option: str
    is_switch: bool


@dataclass(frozen=True)
class Group:
    """`is_open` where something in it differs from the defaults or is wrong."""

    title: str
    rows: list[Row]
    is_open: bool


class OptionForm(forms.Form):
    """`cleaned_data["given"]` are the flags as `to_dict` has them: what differs from the defaults.

    `only`: the names of the options that apply; None: all.
    """

    options: ClassVar[Sequence[Field]]
    sections: ClassVar[Mapping[str, str]]  # group of the options -> heading; the one without is always open
    flags: ClassVar[type[Any]]  # with from_dict, to_dict and a default for each option
    either: ClassVar[Mapping[str, str]]  # "", "yes" and "no" of an option that may stay unsaid -> words
    words: ClassVar[Mapping[str, str]] = {}  # choices, where they need more than their name
    own: ClassVar[frozenset[str]] = frozenset()  # options that the tool does not know

    def __init__(self, *args: Any, only: frozenset[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shown = [field for field in self.options if only is None or field.name in only]
        defaults = self.flags()
        for field in self.shown:
            self.fields[field.name] = self._form_field(field, getattr(defaults, field.name))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.errors:
            return values
        try:
            values["given"] = self.read(values).to_dict()
        except InvalidFlags as error:
            for problem in error.problems:
                self.blame(problem)
        return values

    def read(self, values: Mapping[str, Any]) -> Flags:
        """Raises InvalidFlags."""
        given = {field.name: flag(field, values[field.name]) for field in self.shown}
        given = {name: value for name, value in given.items() if value not in (None, "", [])}
        made: Flags = self.flags.from_dict(given)
        return made

    def groups(self) -> Iterator[Group]:
        for key, title in self.sections.items():
            rows = [self._row(field) for field in self.shown if field.group == key]
            if rows:
                yield Group(title, rows, not title or any(self._stands_out(row.bound) for row in rows))

    def _row(self, field: Field) -> Row:
        option = "" if field.name in self.own else f"--{field.option}"
        return Row(self[field.name], option, field.kind == "switch")

    def blame(self, problem: str) -> None:
        """Say so beside the option that a problem names, else above them all."""
        name, _, message = problem.partition(": ")
        if name in self.fields and message:
            self.add_error(name, message)
        else:
            self.add_error(None, problem)

    def _stands_out(self, bound: forms.BoundField) -> bool:
        default, value = bound.field.initial, bound.value() or ""
        if bound.errors or (default is True and not value):
            return True
        return value not in ("", [], default, str(default))

    def _form_field(self, field: Field, default: Any) -> forms.Field:
        shared: dict[str, Any] = {"label": field.label, "help_text": field.help, "required": False}
        choices = [(choice, self.words.get(choice, choice)) for choice in field.choices]
        if field.kind == "choice":
            return forms.ChoiceField(choices=choices, initial=default, **shared)
        if field.kind == "switch":
            return forms.BooleanField(initial=default, **shared)
        if field.kind == "either":
            return forms.ChoiceField(choices=list(self.either.items()), initial="", **shared)
        if field.kind == "number":
            return forms.IntegerField(min_value=field.low, max_value=field.high, initial=default, **shared)
        if field.kind == "sections":
            boxes = forms.CheckboxSelectMultiple()
            return forms.MultipleChoiceField(choices=choices, widget=boxes, initial=[], **shared)
        widget = forms.Textarea(NO_HELP | {"rows": 2, "placeholder": "one per line"})
        line = forms.TextInput(NO_HELP)
        return forms.CharField(widget=widget if field.kind == "patterns" else line, initial="", **shared)


def flag(field: Field, value: Any) -> Any:
    """What the form gave -> what the flags take."""
    if field.kind == "either":
        return {"yes": True, "no": False}.get(value)
    if field.kind == "patterns":
        return [line.strip() for line in value.splitlines() if line.strip()]
    return value


def initial_values(options: Sequence[Field], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of an earlier job as the form shows them; what it does not know is left out."""
    known = {field.name: field for field in options}
    return {name: _shown(known[name], value) for name, value in flags.items() if name in known}


def _shown(field: Field, value: Any) -> Any:
    if field.kind == "either":
        return {True: "yes", False: "no"}.get(value, "")
    if field.kind == "patterns" and isinstance(value, list):
        return "\n".join(str(item) for item in value)
    return value
