"""Before Django's own: who is asking, and a strict Content-Security-Policy on every answer."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class ClientAddress:
    """Behind TRUSTED_PROXIES, REMOTE_ADDR is the client's, so that a lock-out meets whoever guesses and not
    everybody behind the proxy. From any other sender the X-Forwarded-* headers are not believed."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._trusted = [ipaddress.ip_network(word, strict=False) for word in settings.TRUSTED_PROXIES]

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        sender = request.META.get("REMOTE_ADDR", "")
        # No address: a Unix socket, which only a proxy on this machine opens.
        if self._trusted and (not sender or self._is_proxy(_address(sender))):
            request.META["REMOTE_ADDR"] = self._client(sender, request.META.get("HTTP_X_FORWARDED_FOR", ""))
        else:
            request.META.pop("HTTP_X_FORWARDED_PROTO", None)
        return self._get_response(request)

    def _client(self, sender: str, forwarded: str) -> str:
        """The last one that is no proxy of ours: what stands before it, the client may have written."""
        for word in reversed(forwarded.split(",")):
            found = _address(word)
            if found is None:
                break
            sender = str(found)
            if not self._is_proxy(found):
                break
        return sender

    def _is_proxy(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


class ContentSecurityPolicy:
    """These pages hold forms for database passwords."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response
