"""Keeps secrets out of what people read."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "••••"
# Two characters occur inside words everywhere; hiding them would ruin a log and protect nothing.
SHORTEST = 3


def mask(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret, as it is or percent-encoded, replaced by dots."""
    spellings = {
        spelling for secret in secrets for spelling in (secret, quote(secret, safe=""), quote_plus(secret))
    }
    for spelling in sorted(spellings, key=len, reverse=True):
        if len(spelling) >= SHORTEST:
            text = text.replace(spelling, MASK)
    return text
