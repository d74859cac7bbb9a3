"""For probes and monitors: is this process alive, can it serve, do the workers work."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import queries


@never_cache
@require_safe
def health(_: HttpRequest) -> HttpResponse:
    """200 as long as the process answers; asks nothing of anyone."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(_: HttpRequest) -> HttpResponse:
    """200 when pgbr's own database answers, else 503 with the reason."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        # The first line: libpq's hints may go on about the host.
        reason = (str(error).splitlines() or ["no reason given"])[0]
        body = {"status": "down", "reason": f"pgbr's database does not answer: {reason}"}
        return JsonResponse(body, status=503)
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def status(request: HttpRequest) -> HttpResponse:
    """Workers per queue and storages, for a logged-in person or METRICS_TOKEN as a bearer; 503 when a queue
    has no worker or the default storage failed its test."""
    if _has_token(request):
        found = queries.status(None)
    elif isinstance(request.user, User) and request.user.is_active:
        found = queries.status(request.user)
    else:
        body = {"error": "Log in, or send METRICS_TOKEN: `Authorization: Bearer …`."}
        return JsonResponse(body, status=401, headers={"WWW-Authenticate": "Bearer"})
    return JsonResponse(found, status=503 if found["problems"] else 200)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    expected = settings.METRICS_TOKEN
    if not expected or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given.strip().encode(), expected.encode())
