"""What a dump says about its database: from its CREATE DATABASE statement, read strictly, as values only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .sql import Token, tokens

LONGEST = 64 * 1024
ENCODING = re.compile(r"[A-Za-z0-9_]{1,32}")
LOCALE = re.compile(r"[A-Za-z0-9 _.,@=:+()-]{0,128}")
LONGEST_RULES = 10_000
PROVIDERS = frozenset({"libc", "icu", "builtin"})


@dataclass(frozen=True)
class DatabaseProperties:
    """`collate` and `ctype` are libc's, `locale` is of the provider icu or builtin; "" where not said.

    Their texts are somebody else's: quote them where they go into a statement.
    """

    encoding: str
    locale_provider: str
    collate: str
    ctype: str
    locale: str
    icu_rules: str = ""


def properties(definition: str) -> DatabaseProperties | None:
    """From `CREATE DATABASE name WITH OPTION = value …;` as pg_dump's dumpDatabase writes it, else None."""
    if len(definition) > LONGEST:
        return None
    found = _options(list(tokens(definition)))
    if found is None:
        return None
    both = found.get("LOCALE", "")
    result = DatabaseProperties(
        encoding=found.get("ENCODING", ""),
        locale_provider=found.get("LOCALE_PROVIDER", "libc"),
        collate=found.get("LC_COLLATE", both),
        ctype=found.get("LC_CTYPE", both),
        locale=found.get("ICU_LOCALE", found.get("BUILTIN_LOCALE", "")),
        icu_rules=found.get("ICU_RULES", ""),
    )
    return result if _sound(result) else None


def _options(statement: list[Token]) -> dict[str, str] | None:
    """`NAME = value` after WITH, up to the first semicolon."""
    if [token.keyword for token in statement[:2]] != ["CREATE", "DATABASE"] or len(statement) < 4:
        return None
    if statement[2].kind not in {"word", "name"} or statement[3].keyword != "WITH":
        return None
    found: dict[str, str] = {}
    for at in range(4, len(statement), 3):
        if statement[at].value == ";" and statement[at].kind == "sign":
            return found
        option = statement[at : at + 3]
        if len(option) < 3 or not option[0].keyword or option[1] != Token("sign", "="):
            return None
        if option[2].kind == "sign" or option[0].keyword in found:
            return None
        found[option[0].keyword] = option[2].value
    return None


def _sound(result: DatabaseProperties) -> bool:
    locales = (result.collate, result.ctype, result.locale)
    return (
        ENCODING.fullmatch(result.encoding) is not None
        and result.locale_provider in PROVIDERS
        and all(LOCALE.fullmatch(locale) for locale in locales)
        and len(result.icu_rules) <= LONGEST_RULES
    )
