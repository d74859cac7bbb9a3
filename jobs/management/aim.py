"""What commands that write into a database share: how, the check beforehand, and the question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from django.core.management.base import CommandParser

from jobs.management import text
from jobs.management.cli import JobCommand, Refused, add_consent, require_consent
from jobs.management.options import add_options, given
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.restore_flags import RestoreFlags, mode_problems
from jobs.pgtools.restore_options import MODES, PRESET_LABELS, PRESETS, RESTORE_FIELDS
from jobs.processors.finding import Finding, counted
from jobs.processors.preflight import stops
from jobs.restoring import Check, MigrationOrder, RestoreOrder

Order = TypeVar("Order", RestoreOrder, MigrationOrder)

ASKS = {"replace": "replaced", "existing": "written into"}
TITLES = {
    "common": "restoring, most used",
    "what": "what is restored",
    "how": "how it is restored",
    "advanced": "restoring, rarely needed",
}
MODE_HELP = (
    "new: a database that pgbr creates. empty: one that is there and holds nothing. replace: restore beside "
    "it, swap the names, keep the old one. existing: into one that holds data, with --clean, --data-only or "
    "chosen tables. Left out: new with --as, else replace if the target holds data, else empty"
)


class AimedCommand(JobCommand):
    """A command whose job writes into a database."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--as", dest="as_name", metavar="DBNAME", help="another database there (default: the login's own)"
        )
        parser.add_argument("--mode", choices=MODES, help=MODE_HELP)
        presets = "; ".join(f"{name}: {words}" for name, words in PRESET_LABELS.items())
        parser.add_argument("--preset", choices=list(PRESETS), default="same", help=presets)
        parser.add_argument("--check", action="store_true", help="say what stands against it, and do nothing")
        add_consent(parser)
        super().add_arguments(parser)
        add_options(parser, RESTORE_FIELDS, RestoreFlags, TITLES)

    def mode(self, options: Mapping[str, Any]) -> str:
        """As given; "" lets the check suggest one."""
        return options["mode"] or ("new" if options["as_name"] else "")

    def flags(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Raises `InvalidFlags`, before anything is asked of a server or stored."""
        flags = RestoreFlags.from_dict(dict(PRESETS[options["preset"]]) | given(RESTORE_FIELDS, options))
        if (mode := self.mode(options)) and (problems := mode_problems(flags, mode, plain=True)):
            raise InvalidFlags(problems)
        return flags.to_dict()

    def aimed(self, order: Order, look: Callable[[Order], Check], options: Mapping[str, Any]) -> Order:
        """The order as it may be queued: its mode chosen, checked, and agreed to where it takes something
        away. With --check the command ends here. Raises `Refused` with every reason and remedy."""
        check = look(order)
        order = order if order.mode else replace(order, mode=check.suggested_mode)
        if options["check"]:
            self._show(order, check, as_json=options["json"])
            raise SystemExit(1 if check.stops else 0)
        if check.stops:
            raise Refused(" / ".join(_in_words(finding) for finding in stops(check.findings)))
        for finding in check.findings:
            if finding.level == "warn":
                self.remark(f"warning: {text.printable(_in_words(finding))}")
        if order.mode in ASKS:
            what = f"{order.target_name} at {check.host}{_size(check)} will be {ASKS[order.mode]}"
            require_consent(self, options, what, order.target_name)
        return order

    def _show(self, order: RestoreOrder | MigrationOrder, check: Check, *, as_json: bool) -> None:
        if as_json:
            self.emit(
                {
                    "stops": check.stops,
                    "mode": order.mode,
                    "host": check.host,
                    "target_name": order.target_name,
                    "findings": [asdict(finding) for finding in check.findings],
                }
            )
            return
        self.say(text.printable(f"{order.mode}: {order.target_name} at {check.host}{_size(check)}"))
        for finding in check.findings:
            self.say(f"  {finding.level:<5} {text.printable(_in_words(finding))}")


def _in_words(finding: Finding) -> str:
    return " ".join(filter(None, [_sentence(finding.title), finding.detail, finding.remedy]))


def _sentence(words: str) -> str:
    return words if words.endswith((".", ":", "?")) else f"{words}."


def _size(check: Check) -> str:
    facts = check.facts
    if facts is None or not facts.exists:
        return ""
    return f" ({text.size(facts.size_bytes)}, {counted(facts.tables, 'table')})"
