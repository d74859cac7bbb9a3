"""The environment, read here and in settings.py and nowhere else.

Every value is parsed when the process starts; one that does not parse raises `ImproperlyConfigured`
naming the variable, what it holds and what it should be. Nothing falls back to a default in silence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import environ
from django.core.exceptions import ImproperlyConfigured

CHECKOUT = Path(__file__).resolve().parent.parent

Value = TypeVar("Value")

environ.Env.read_env(CHECKOUT / ".env")
_env = environ.Env()


def text(name: str, default: str = "") -> str:
    return str(_env.str(name, default=default)).strip()


def secret(name: str) -> str:
    """NAME, or the content of the file that NAME_FILE points to; setting both is an error."""
    path = text(f"{name}_FILE")
    if not path:
        return text(name)
    if text(name):
        raise ImproperlyConfigured(f"Both {name} and {name}_FILE are set: keep one of them.")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {error}") from error


def words(name: str) -> list[str]:
    """A comma-separated list; spaces around the items and empty items are dropped."""
    return [word for word in (part.strip() for part in text(name).split(",")) if word]


def integer(name: str, default: int, *, minimum: int, maximum: int = 2**53) -> int:
    return _parsed(name, default, int, minimum, maximum, "a whole number")


def seconds(name: str, default: float, *, minimum: float = 0.0, maximum: float = 10.0**7) -> float:
    return _parsed(name, default, float, minimum, maximum, "a number of seconds")


def boolean(name: str, default: bool = False) -> bool:
    given = text(name).lower()
    if not given:
        return default
    if given in {"1", "true", "yes", "on"}:
        return True
    if given in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={given!r} is not a yes or no: write true or false.")


def _parsed(
    name: str,
    default: Value,
    parse: Callable[[str], Value],
    minimum: float,
    maximum: float,
    what: str,
) -> Value:
    given = text(name)
    if not given:
        return default
    try:
        value = parse(given)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={given!r} is not {what}.") from None
    if not minimum <= float(value) <= maximum:  # type: ignore[arg-type]
        raise ImproperlyConfigured(f"{name}={given!r} must lie between {minimum:g} and {maximum:g}.")
    return value


def home() -> Path:
    """Where all state lies (PGBR_HOME), as an absolute path; it need not exist yet."""
    given = text("PGBR_HOME")
    if given:
        return Path(given).expanduser().absolute()
    from pgbr import embedded

    return embedded.default_home(CHECKOUT)


def database_url() -> str | None:
    """DATABASE_URL, or None where the embedded PostgreSQL is to be used."""
    return secret("DATABASE_URL") or None


def is_set(name: str) -> bool:
    return bool(os.environ.get(name, "").strip())
