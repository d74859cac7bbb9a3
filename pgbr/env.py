"""The environment, read here and in settings.py and nowhere else.

Every value is parsed when the process starts; one that does not parse raises `ImproperlyConfigured`
naming the variable, what it holds and what it should be. Nothing falls back to a default in silence.
"""

from __future__ import annotations

import ipaddress
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

CHECKOUT = Path(__file__).resolve().parent.parent

Value = TypeVar("Value", int, float)
DATABASE_FORM = "postgresql://user:password@host:port/database, characters such as @ : / ? # % in it as %40 …"

environ.Env.read_env(CHECKOUT / ".env")


def text(name: str, default: str = "") -> str:
    """As it is: django-environ would take a value that begins with $ for the name of another variable."""
    return os.environ.get(name, "").strip() or default


def secret(name: str) -> str:
    """NAME, or the content of the file that NAME_FILE points to; setting both is an error."""
    path = text(f"{name}_FILE")
    if not path:
        return text(name)
    if text(name):
        raise ImproperlyConfigured(f"Both {name} and {name}_FILE are set: keep one of them.")
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {error}") from error
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE={path} is an empty file: write the secret into it.")
    return content


def words(name: str) -> list[str]:
    """A comma-separated list; spaces around the items and empty items are dropped."""
    return [word for word in (part.strip() for part in text(name).split(",")) if word]


def networks(name: str) -> list[str]:
    """Addresses or networks, as in 10.0.0.7 or 10.0.0.0/8."""
    for word in words(name):
        try:
            ipaddress.ip_network(word, strict=False)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}={text(name)!r}: {word!r} is not an address or a network such as 10.0.0.0/8."
            ) from None
    return words(name)


def url(name: str, default: str = "") -> str:
    """An http or https address, without the slash at its end."""
    given = text(name, default)
    try:
        parts = urlsplit(given)
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if given and not fits:
        raise ImproperlyConfigured(f"{name}={given!r} is not a URL such as https://pgbr.example.com.")
    return given.rstrip("/")


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
    if not minimum <= value <= maximum:
        raise ImproperlyConfigured(f"{name}={given!r} must lie between {minimum:.16g} and {maximum:.16g}.")
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


def database(url: str) -> dict[str, Any]:
    """A URL as Django's settings have it. No error shows it, for there is a password in it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            found: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError:
        found = {}
    if found.get("ENGINE") != "django.db.backends.postgresql" or not found["NAME"]:
        raise ImproperlyConfigured(f"DATABASE_URL is not of the form {DATABASE_FORM}")
    return found | {key: unquote(found[key]) for key in ("HOST", "NAME")}


def direct_database_url() -> str:
    """DATABASE_DIRECT_URL, or "" where DATABASE_URL serves for everything."""
    given = secret("DATABASE_DIRECT_URL")
    if given and not given.startswith(("postgresql://", "postgres://")):
        raise ImproperlyConfigured(f"DATABASE_DIRECT_URL is not of the form {DATABASE_FORM}")
    return given


def storage() -> dict[str, Any] | None:
    """What STORAGE_… say of an S3-compatible storage; None without STORAGE_BUCKET."""
    chosen = {
        "endpoint": url("STORAGE_ENDPOINT"),
        "region": text("STORAGE_REGION", "us-east-1"),
        "bucket": text("STORAGE_BUCKET"),
        "prefix": text("STORAGE_PREFIX").strip("/"),
        "access_key_id": secret("STORAGE_ACCESS_KEY_ID"),
        "secret_access_key": secret("STORAGE_SECRET_ACCESS_KEY"),
        "force_path_style": boolean("STORAGE_FORCE_PATH_STYLE", bool(text("STORAGE_ENDPOINT"))),
    }
    if chosen["bucket"]:
        return chosen
    for name in ("endpoint", "access_key_id", "secret_access_key"):
        if chosen[name]:
            raise ImproperlyConfigured(
                f"STORAGE_{name.upper()} is set without STORAGE_BUCKET, so backups would go to the folder on "
                "this machine: name the bucket, or leave the other STORAGE_ variables out."
            )
    return None
