"""The forms of a restore: where to, and pg_restore's options. Migrations share them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from jobs.admin.option_form import OptionForm
from jobs.admin.widgets import NO_HELP
from jobs.models import Database
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restore_options import FOR_SQL, PRESETS, RESTORE_FIELDS
from jobs.restoring.orders import LONGEST_NAME

AUTOMATIC = ""
MODES = {
    AUTOMATIC: "As fits: replace the database if it holds data, else fill it",
    "replace": "Replace: restore beside it, then swap names in one step; the old one is kept",
    "new": "A new database, made like the source; dropped again if the restore fails",
    "empty": "An empty database that exists; in a single transaction, unless you say otherwise",
    "existing": "Into a database with data, for those who know: with “Drop before creating” or “Data only”",
}
IN_WORDS = {
    "replace": "replace the database, keeping the old one",
    "new": "into a new database",
    "empty": "into an empty database",
    "existing": "into a database with data",
}
ASKS = frozenset({"replace", "existing"})  # modes that take something away, and so ask for the target's name


class RestoreOptions(OptionForm):
    options = RESTORE_FIELDS
    flags = RestoreFlags
    either = {"": "as fits", "yes": "yes", "no": "no"}
    own = frozenset({"missing_roles", "analyze", "keep_days", "accept_errors", "no_extension_comments"})
    words = {
        "refuse": "refuse: do not begin",
        "create": "create: as on the source's server",
        "skip": "skip: without owners and privileges",
    }
    sections = {
        "common": "",
        "what": "What to restore",
        "how": "How it is restored",
        "advanced": "Advanced",
    }


def replaced(data: Any, values: Mapping[str, str]) -> Any:
    """What was sent to a form (a QueryDict or a plain one) with other values in some places."""
    changed = data.copy()
    for name, value in values.items():
        changed[name] = value
    return changed


def with_preset(values: Mapping[str, Any], preset: str) -> dict[str, Any]:
    """`values` of the form with what the preset decides about set as it says."""
    decided = {name for known in PRESETS.values() for name in known}
    chosen = PRESETS.get(preset, {})
    return dict(values) | {name: bool(chosen.get(name)) for name in decided}


def preset_of(flags: Mapping[str, Any]) -> str:
    """Whose switches are exactly those that are on; "" where no preset is."""
    decided = {name for known in PRESETS.values() for name in known}
    on = {name for name in decided if flags.get(name)}
    return next((key for key, known in PRESETS.items() if set(known) == on), "")


if TYPE_CHECKING:
    DatabaseField = forms.ModelChoiceField[Database]
else:
    DatabaseField = forms.ModelChoiceField


class DatabaseChoice(DatabaseField):
    """`whose`: the account that is not told which databases are its own; None: all are of one account."""

    def __init__(self, *args: Any, whose: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.whose = whose

    def label_from_instance(self, obj: Database) -> str:
        facts = obj.facts if isinstance(obj.facts, dict) else {}
        where = f" at {facts['host']}" if facts.get("host") else ""
        owner = f" of {obj.user}" if self.whose not in (None, obj.user_id) else ""
        return f"{obj.name}{owner}{where}{' (protected)' if obj.protected else ''}"


class LandingForm(forms.Form):
    """How the target is written into, and what it is called there."""

    mode = forms.ChoiceField(
        label="How", choices=list(MODES.items()), required=False, widget=forms.RadioSelect, initial=AUTOMATIC
    )
    name = forms.CharField(
        label="Name of the database there",
        required=False,
        strip=False,
        widget=forms.TextInput(NO_HELP),
        help_text="As PostgreSQL knows it. Empty: the one of the connection. A new database needs one.",
    )

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name.strip():
            return ""
        if len(name.encode()) > LONGEST_NAME:
            raise ValidationError(f"PostgreSQL takes names of up to {LONGEST_NAME} bytes.")
        if not name.isprintable():
            raise ValidationError("A name of printable characters is needed.")
        return name

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("mode") == "new" and not values.get("name") and "name" not in self.errors:
            self.add_error("name", "A new database needs a name.")
        return values


class RestoreTarget(LandingForm):
    """The databases of the one to whom the source belongs."""

    database = DatabaseChoice(
        Database.objects.none(),
        label="Database",
        empty_label="choose one",
        help_text="A registered database: its server, its login, its name.",
    )
    field_order = ["database", "mode", "name"]

    def __init__(self, owner_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["database"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101
        field.queryset = Database.objects.filter(user_id=owner_id).order_by("name")


def for_format(format: str) -> frozenset[str] | None:
    """The options that a source of this format can be told; None: all."""
    return FOR_SQL if format == "plain" else None
