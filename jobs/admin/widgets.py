"""Fields for secrets: they go in and never come out again."""

# ruff: noqa: ARG002  Django fixes the signatures

from __future__ import annotations

from typing import Any

from django import forms

NO_HELP = {"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}


class WriteOnlyLine(forms.TextInput):
    """Shown while it is typed; never sent back, not even with an error on another field."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(NO_HELP | {"class": "vLargeTextField"} | (attrs or {}))

    def format_value(self, value: Any) -> None:
        return None


class WriteOnlyText(forms.Textarea):
    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(NO_HELP | {"rows": 4, "class": "vLargeTextField"} | (attrs or {}))

    def format_value(self, value: Any) -> None:
        return None


def secret_line() -> forms.PasswordInput:
    return forms.PasswordInput(
        NO_HELP | {"autocomplete": "new-password", "class": "vTextField"}, render_value=False
    )
