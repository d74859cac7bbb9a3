"""What a browser would send of a page: its fields as they stand, and the buttons in the order of the page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any


class Form(HTMLParser):
    """The form of class `name` in a page."""

    def __init__(self, page: str, name: str = "backup-form") -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self.buttons: list[tuple[str, str]] = []
        self._name, self._inside = name, False
        self._text, self._select, self._shown = "", "", ""
        self.feed(page)

    def sent(self, pressed: str = "", **changed: Any) -> dict[str, Any]:
        """With `changed` values (None: left out), after pressing the button of that value."""
        fields = {name: values for name, values in self.values.items() if values}
        fields |= {name.replace("__", "-"): value for name, value in changed.items()}
        fields = {name: value for name, value in fields.items() if value is not None}
        return fields | ({"step": pressed} if pressed else {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._inside = self._name in (given.get("class") or "").split()
        if not self._inside:
            return
        name = given.get("name") or ""
        value = given.get("value") or ("on" if given.get("type") == "checkbox" else "")
        if tag == "button":
            self.buttons.append((name, value))
        elif tag == "input" and name and self._counts(given):
            self.values.setdefault(name, []).append(value)
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in given or self._select not in self.values):
            self.values[self._select] = [value]
        elif tag == "textarea":
            self._text, self._shown = name, ""

    def _counts(self, given: dict[str, str | None]) -> bool:
        return given.get("type") not in ("checkbox", "radio") or "checked" in given

    def handle_data(self, data: str) -> None:
        self._shown += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._text:
            self.values[self._text] = [self._shown.removeprefix("\n")]
            self._text = ""
        elif tag == "select":
            self._select = ""
        elif tag == "form":
            self._inside = False
