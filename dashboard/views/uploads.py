"""Files to restore from: the body of a request is one file, streamed into the default storage."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.utils.http import parse_header_parameters
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from jobs import uploads
from jobs.admin.base import may_enter
from jobs.crypto import CannotDecrypt
from jobs.models import Upload
from jobs.services import NotFound, ServiceError
from jobs.storage.base import StoreError
from jobs.upload_limits import CutOff, InUse, NoDump, TooLarge, UploadRefused, refuse_empty, refuse_large
from jobs.waiting import Turns

PIECE = 256 * 1024
MOST_DIGITS = 18  # of a length; Python takes thousands of digits for no number at all
IDLE_SECONDS = 60.0
# Each holds a thread of the site for as long as it takes (gunicorn.conf.py has 16).
MOST_AT_ONCE, MOST_EACH = 4, 2
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (TooLarge, 413),
    (NoDump, 422),
    (UploadRefused, 400),
    (NotFound, 404),
    (InUse, 409),
    (ServiceError, 503),
    (StoreError, 503),
    (CannotDecrypt, 503),
)
View = Callable[..., HttpResponse]

turns = Turns("uploads", MOST_AT_ONCE, MOST_EACH)


class Refused(Exception):
    """A request that is answered with `status` before anything of its body is looked at."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _entry(view: View) -> View:
    """Errors as JSON, for logged-in accounts only, with the CSRF token in a header.

    Django looks for that token in the form fields of the body first: a body it took for a form, of whatever
    size, it would read and put down before the view is asked. So it is told that there are none.
    """
    checked = csrf_protect(view)

    @csrf_exempt
    @never_cache
    def entry(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not may_enter(request):
            return _error(401, "Log in first: send the session's cookie along.")
        request.POST = QueryDict()
        try:
            return checked(request, *arguments, **named)
        except Refused as error:
            return _error(error.status, str(error))
        except tuple(kind for kind, _ in STATUSES) as error:
            return _error(next(status for kind, status in STATUSES if isinstance(error, kind)), str(error))

    return entry


@_entry
@require_http_methods(["GET", "HEAD", "POST"])
def collection(request: HttpRequest) -> HttpResponse:
    """GET: the caller's own uploads, newest first. POST: take one in; 201 with
    `{id, name, size, sha256, contents}`, else `{error}` with 400, 411, 413, 415, 422 or 503."""
    user = _caller(request)
    if request.method == "POST":
        return JsonResponse(_brief(_take(request, user)), status=201)
    rows = Upload.objects.filter(user=user).order_by("-created_at")
    return JsonResponse({"uploads": [_full(row) for row in rows]})


@_entry
@require_http_methods(["DELETE"])
def single(request: HttpRequest, upload_id: UUID) -> HttpResponse:
    """204; 404 for others', 409 while a restore from it waits or runs."""
    uploads.delete(Upload(id=upload_id), by=_caller(request))
    return HttpResponse(status=204)


def _take(request: HttpRequest, user: User) -> Upload:
    name, expected = _name(request), _length(request)
    with turns.turn(user), closing(_pieces(request, expected)) as pieces:
        return uploads.receive(user, name, pieces, expected)


def _name(request: HttpRequest) -> str:
    """From `?name=`, else from a Content-Disposition header."""
    header = request.headers.get("Content-Disposition", "").encode("latin-1", "replace")
    try:
        options = parse_header_parameters(header.decode(errors="replace"))[1]
    except ValueError:  # in an encoding that does not exist
        options = {}
    return request.GET.get("name") or options.get("filename", "")


def _length(request: HttpRequest) -> int | None:
    """Bytes of the body; None when it comes in chunks. Whatever can be refused unread is refused here."""
    if request.content_type == "multipart/form-data":
        raise Refused(415, "Send the file itself as the body of the request, not a form with a file in it.")
    given = request.META.get("CONTENT_LENGTH") or ""
    if given.isascii() and given.isdigit() and len(given) <= MOST_DIGITS:
        refuse_large(int(given))
        refuse_empty(int(given))
        return int(given)
    chunked = request.headers.get("Transfer-Encoding", "").lower().endswith("chunked")
    if not (chunked and request.META.get("wsgi.input_terminated")):
        raise Refused(411, "Say how long the file is (Content-Length), or send it in chunks.")
    return None


def _pieces(request: HttpRequest, expected: int | None) -> Generator[bytes]:
    """The body as it arrives. Django reads none without a length; the server's own stream ends by itself.

    A client that falls silent gives its thread back.
    """
    source = request if expected is not None else request.META["wsgi.input"]
    sock = request.META.get("gunicorn.socket")
    if sock is not None:
        sock.settimeout(IDLE_SECONDS)
    try:
        while piece := source.read(PIECE):
            yield piece
    except OSError as error:
        raise CutOff("The file did not arrive as a whole: the connection broke. Upload it again.") from error
    finally:
        if sock is not None:
            sock.settimeout(None)


def _caller(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101  nobody else gets past `_entry`
    return request.user


def _brief(row: Upload) -> dict[str, Any]:
    contents = (row.facts or {}).get("in_words")
    return {"id": row.pk, "name": row.name, "size": row.size, "sha256": row.sha256, "contents": contents}


def _full(row: Upload) -> dict[str, Any]:
    return _brief(row) | {"state": row.state, "created_at": row.created_at, "keep_until": row.keep_until}


def _error(status: int, message: str) -> HttpResponse:
    return JsonResponse({"error": message}, status=status)
