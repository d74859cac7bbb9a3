"""A schedule as a value, and what has to be true of one before it becomes a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from jobs.addresses import is_metadata
from jobs.models import Database, Storage
from jobs.pgtools.flags import DumpFlags
from jobs.services import NotFound, ServiceError
from jobs.stores import usable_by
from schedules import cron
from schedules.models import Schedule
from schedules.retention import Policy

MOST_KEPT = 100_000  # of anything: far more than a day each for a lifetime
MOST_BYTES = 2**63 - 1
LONGEST_NAME, LONGEST_URL, MOST_STORAGES = 100, 2000, 20
OVERLAPS = tuple(value for value, _ in Schedule._meta.get_field("overlap").choices or ())
PING_URLS = ("ping_start_url", "ping_success_url", "ping_failure_url")


@dataclass(frozen=True)
class Target:
    """A storage that backups go to. With no rule in `policy` what lies there is kept as the schedule says."""

    storage: Storage
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class Plan:
    """Everything that people choose about a schedule but its database.

    The dump is written into the first of `storages`, and copied to the others; none: where the database
    says. `keep_failed`: failed and cancelled runs in the history, None all.
    """

    name: str
    cron_expression: str
    timezone: str = "UTC"
    flags: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    skip_missed: bool = False
    overlap: str = "allow"
    policy: Policy = field(default_factory=Policy)
    keep_failed: int | None = None
    storages: Sequence[Target] = ()
    ping_start_url: str = ""
    ping_success_url: str = ""
    ping_failure_url: str = ""


def plan_of(schedule: Schedule) -> Plan:
    """The plan behind a row, as it is stored; a row changed by hand may hold what a plan must not."""
    columns = {each.name: getattr(schedule, each.name) for each in fields(Plan) if each.name not in _BUILT}
    return Plan(**columns, policy=Policy.of(schedule), storages=tuple(targets_of(schedule)))


def plan_to_copy(schedule: Schedule) -> Plan:
    """For another schedule: without pings, as a monitor that two schedules call does not miss one of them."""
    return replace(plan_of(schedule), ping_start_url="", ping_success_url="", ping_failure_url="")


def targets_of(schedule: Schedule) -> list[Target]:
    """In their order."""
    found = schedule.schedulestorage_set.select_related("storage").order_by("position")
    return [Target(row.storage, Policy.of(row)) for row in found]


def checked(plan: Plan, database: Database) -> dict[str, Any]:
    """The columns of the row, `next_run_at` and what the tick keeps apart.

    Raises `ServiceError`, `jobs.pgtools.errors.InvalidFlags` or `schedules.cron.CronError`.
    """
    name = plan.name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ServiceError(f"A schedule needs a name of 1 to {LONGEST_NAME} printable characters.")
    if plan.overlap not in OVERLAPS:
        raise ServiceError(f"overlap must be one of {', '.join(OVERLAPS)}, not {plan.overlap!r}.")
    expression, timezone = " ".join(plan.cron_expression.split()), plan.timezone.strip()
    cron.check(expression, timezone)
    _check_storages(plan.storages, database)
    return {
        "name": name,
        "cron_expression": expression,
        "timezone": timezone,
        "flags": DumpFlags.from_dict(plan.flags).to_dict(),
        "enabled": plan.enabled,
        "skip_missed": plan.skip_missed,
        "overlap": plan.overlap,
        "keep_failed": _whole("keep_failed", plan.keep_failed, least=0),
        **rules(plan.policy),
        **{column: _ping(getattr(plan, column), column) for column in PING_URLS},
    }


def rules(policy: Policy) -> dict[str, int | None]:
    """The columns of a policy; a rule of 0 is none. Raises `ServiceError`."""
    found = {each.name: getattr(policy, each.name) or None for each in fields(Policy)}
    for name, value in found.items():
        _whole(name, value, least=1, most=MOST_BYTES if name == "keep_bytes" else MOST_KEPT)
    return found


_BUILT = {"policy", "storages"}


def _whole(name: str, value: int | None, *, least: int, most: int = MOST_KEPT) -> int | None:
    if value is not None and not (type(value) is int and least <= value <= most):
        raise ServiceError(f"{name} must be a whole number from {least} to {most}, or left out.")
    return value


def _check_storages(targets: Sequence[Target], database: Database) -> None:
    ids = [target.storage.id for target in targets]
    if len(set(ids)) < len(ids):
        raise ServiceError("A storage is named twice: each holds one copy of a backup.")
    if len(ids) > MOST_STORAGES:
        raise ServiceError(f"A backup goes to at most {MOST_STORAGES} storages.")
    usable = set(usable_by(database.user).filter(id__in=ids).values_list("id", flat=True))
    for target in targets:
        if target.storage.id not in usable:
            raise NotFound(f"No storage is called {target.storage.name!r}.")
        rules(target.policy)


def _ping(url: str, column: str) -> str:
    """A URL to call, or "". Where its name leads to is looked at when it is called."""
    url = url.strip()
    if not url:
        return ""
    what = f"The URL of the {column.split('_')[1]} ping"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ServiceError(f"{what} cannot be read: it must look like https://example.com/path.") from None
    if parts.scheme not in ("http", "https") or not host or len(url) > LONGEST_URL or _has_blanks(url):
        raise ServiceError(f"{what} must look like https://example.com/path.")
    if "@" in parts.netloc:
        raise ServiceError(f"{what} must hold no user or password: it is shown on pages.")
    if _is_metadata(host):
        raise ServiceError(f"{what} leads to a cloud's metadata, which pgbr does not call.")
    return url


def _has_blanks(url: Iterable[str]) -> bool:
    return any(char.isspace() or not char.isprintable() for char in url)


def _is_metadata(host: str) -> bool:
    try:
        return is_metadata(host)
    except ValueError:
        return False  # a name
